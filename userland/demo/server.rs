//! A service: receives calls on its endpoint and counts.
#![no_std]
#![no_main]

use capos_rt::{Env, Error, println, serve};
use demo_schema::counter::{self, AddParams, AddResults};
use schema_wire::{Answer, Exception, ExceptionKind};

capos_rt::main!(main);

/// What the service knows between calls.
struct Counting {
    total: u64,
}

impl counter::Server for Counting {
    fn add(&mut self, params: AddParams) -> Answer<AddResults> {
        let Some(total) = self.total.checked_add(params.amount) else {
            return Err(Exception::new(ExceptionKind::Failed, "the sum is full").into());
        };
        self.total = total;
        Ok(AddResults { total })
    }
}

fn main(env: &Env) -> Result<(), Error> {
    let requests = env.cap("requests", schema::endpoint::INTERFACE_ID)?;
    println!(env, "server: ready");
    let mut counting = Counting { total: 0 };
    let ended = serve(&env.io, requests, |call, results| {
        counter::dispatch(&mut counting, call.method, call.params, results)
    });
    println!(env, "server: {} in all", counting.total);
    Err(ended.into())
}
