//! A transport whose service is a function.

use schema_wire::{Callee, CapSlot, Encode, Reply, Served, Status, Transfer, Transport};
use zerocopy::IntoBytes;

/// Bytes that begin at a multiple of 8.
#[derive(Clone, Debug, Default)]
pub struct Words(Vec<u64>);

impl Words {
    /// Room for `bytes`, filled with what an earlier message could have left there.
    pub fn dirty(bytes: usize) -> Self {
        Self(vec![0xa5a5_a5a5_a5a5_a5a5; bytes.div_ceil(8)])
    }

    /// A copy of `bytes`, with zeros up to a whole word.
    pub fn of(bytes: &[u8]) -> Self {
        let mut words = Self(vec![0; bytes.len().div_ceil(8)]);
        for (to, from) in words.bytes_mut().iter_mut().zip(bytes) {
            *to = *from;
        }
        words
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The bytes, to change.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.as_mut_bytes()
    }
}

/// A transport that gives each call to `serve(method, parameters, results)`.
pub struct Loopback<F> {
    serve: F,
    params: Words,
    results: Words,
    /// Bytes a caller can take.
    pub capacity: usize,
    /// What was sent along with the last call.
    pub sent: Vec<Transfer>,
    /// What comes along with each answer.
    pub received: Vec<CapSlot>,
}

impl<F: FnMut(u16, &[u8], &mut [u8]) -> Result<Served, Status>> Loopback<F> {
    /// A transport to `serve`.
    pub fn new(serve: F) -> Self {
        Self {
            serve,
            params: Words::default(),
            results: Words::default(),
            capacity: 4096,
            sent: Vec::new(),
            received: Vec::new(),
        }
    }
}

impl<F: FnMut(u16, &[u8], &mut [u8]) -> Result<Served, Status>> Transport for Loopback<F> {
    fn call<P: Encode>(
        &mut self,
        callee: Callee,
        params: &P,
        transfers: &[Transfer],
    ) -> Result<Reply<'_>, Status> {
        self.sent = transfers.to_vec();
        self.params = Words::dirty(params.message_bytes());
        let length =
            params.encode(self.params.bytes_mut()).map_err(schema_wire::WireError::status)?;
        assert_eq!(length, params.message_bytes(), "the size said before is the size written");
        self.results = Words::dirty(self.capacity);
        let params = self.params.bytes().get(..length).unwrap_or_default();
        let served = (self.serve)(callee.method, params, self.results.bytes_mut())?;
        let (is_exception, length) = match served {
            Served::Results(length) => (false, length),
            Served::Exception(length) => (true, length),
            Served::Later => return Err(Status::Cancelled),
        };
        let bytes = self.results.bytes().get(..length).unwrap_or_default();
        Ok(Reply { is_exception, bytes, transfers: &self.received })
    }
}
