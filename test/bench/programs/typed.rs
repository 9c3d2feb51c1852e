//! The server of typed calls: messages are decoded and encoded on this side too.
#![no_std]
#![no_main]

use bench_schema::echo::{self, EchoParams, EchoResults};
use capos_rt::{Env, Error, serve};
use schema_wire::Answer;

capos_rt::main!(main);

struct Echo;

impl echo::Server for Echo {
    fn echo(&mut self, params: EchoParams) -> Answer<EchoResults> {
        let EchoParams { a, b, c, d, e, f, g } = params;
        Ok(EchoResults { a, b, c, d, e, f, g })
    }
}

fn main(env: &Env) -> Result<(), Error> {
    let requests = env.cap("requests", schema::endpoint::INTERFACE_ID)?;
    let ended = serve(&env.io, requests, |call, results| {
        echo::dispatch(&mut Echo, call.method, call.params, results)
    });
    Err(ended.into())
}
