//! The slow model of one queue.

use core_sched::Activity;
use core_sched_policy::{LatencyClass, PolicyKind, QUANTUM_NS, Share};

#[derive(Clone, Copy, Debug, Default)]
pub struct Slow {
    pub activity: Activity,
    pub share: Share,
    pub wanted: Share,
    pub start: i128,
    pub fraction: u128,
    pub kept: i128,
    /// The request: where it starts and ends, and whether it waits to become eligible.
    pub request_start: i128,
    pub finish: i128,
    pub is_early: bool,
    pub arrival: u64,
    pub since_ns: u64,
    pub runtime_ns: u64,
    pub virtual_ns: u128,
    pub runnable_ns: u64,
    pub blocks: u64,
    pub preemptions: u64,
}

#[derive(Debug, Default)]
pub struct Model {
    pub kind: PolicyKind,
    pub threads: Vec<Slow>,
    pub now_v: i128,
    pub arrivals: u64,
    pub slice_end_ns: u64,
    /// The request the current thread is on.
    pub current_start: i128,
    pub current_finish: i128,
    /// Virtual time it has been served since its last charge, in whole slices.
    pub current_ran: i128,
    pub passing: i128,
}

impl Model {
    pub fn who(&self, activity: Activity) -> Option<usize> {
        self.threads.iter().position(|t| t.activity == activity)
    }

    pub fn waiting(&self) -> usize {
        self.threads.iter().filter(|t| t.activity == Activity::Queued).count()
    }

    pub fn alone(&self) -> bool {
        self.waiting() == 0 && self.who(Activity::Direct).is_none()
    }

    pub fn virtual_of(share: &Share, elapsed_ns: u64, fraction: u128) -> (i128, u128) {
        let number = u128::from(share.weight().get());
        let inverse = ((64u128 << 32) + number / 2) / number;
        let exact = u128::from(elapsed_ns) * inverse + fraction;
        ((exact >> 32) as i128, exact & 0xffff_ffff)
    }

    pub fn limit(share: &Share) -> i128 {
        let halves = match share.class() {
            LatencyClass::Interactive | LatencyClass::Normal | LatencyClass::IpcServer => 2,
            LatencyClass::Batch => 8,
        };
        (QUANTUM_NS / 2 * halves * 64 / u64::from(share.weight().get())).into()
    }

    pub fn request(share: &Share) -> i128 {
        let halves = match share.class() {
            LatencyClass::Interactive => 1,
            LatencyClass::Normal | LatencyClass::IpcServer => 2,
            LatencyClass::Batch => 8,
        };
        (QUANTUM_NS / 2 * halves * 64 / u64::from(share.weight().get())).into()
    }

    /// How much of its request a patient thread is owed before it is eligible.
    pub fn patience(&self, share: &Share) -> i128 {
        match (self.kind, share.class()) {
            (PolicyKind::Eevdf, LatencyClass::Batch) => {
                Self::request(share) - Self::request(share) / 4
            }
            _ => 0,
        }
    }

    /// Sum over all competitors of weight times distance from virtual time, and of weights. The
    /// running one stands where it was at the end of its last whole slice.
    pub fn pulls(&self) -> (i128, i128) {
        let mut sums = (0, 0);
        for t in &self.threads {
            let at = match t.activity {
                Activity::Queued | Activity::Direct => t.start,
                Activity::Running => t.start + self.current_ran,
                _ => continue,
            };
            let weight = i128::from(t.share.weight().get());
            sums.0 += weight * (at - self.now_v);
            sums.1 += weight;
        }
        sums
    }

    /// Under EEVDF virtual time is the mean, unless that lies behind it.
    pub fn follow_mean(&mut self) {
        let (pulls, weights) = self.pulls();
        if self.kind == PolicyKind::Eevdf && weights > 0 {
            self.now_v += pulls.div_euclid(weights).max(0);
        }
    }

    /// Where a newcomer with that lag goes.
    pub fn place(&self, lag: i128, share: &Share) -> i128 {
        self.now_v - lag.clamp(-Self::limit(share), Self::limit(share))
    }

    pub fn is_eligible(&self, request_start: i128) -> bool {
        self.kind == PolicyKind::Wfq || request_start <= self.now_v
    }

    /// A thread alone on the CPU is chosen again each time its slice would have ended.
    pub fn pass_time(&mut self, now_ns: u64) {
        let Some(who) = self.who(Activity::Running).filter(|_| self.alone()) else { return };
        let t = self.threads[who];
        let mut last = None;
        while self.slice_end_ns <= now_ns {
            let ran = Self::virtual_of(&t.share, self.slice_end_ns - t.since_ns, 0).0;
            match self.kind {
                PolicyKind::Wfq => self.now_v = self.now_v.max(t.start + ran),
                PolicyKind::Eevdf => last = Some(ran),
            }
            self.current_start = t.start + ran + self.patience(&t.share);
            self.current_finish = t.start + ran + Self::request(&t.share);
            self.slice_end_ns += QUANTUM_NS;
        }
        if let Some(ran) = last {
            let more = ran - self.current_ran;
            self.current_ran = ran;
            self.serve(more, &t.share);
        }
    }

    /// Virtual time passes by the mean, or by seven eighths of what was served, divided by
    /// weight, if that is more.
    pub fn serve(&mut self, virtual_ns: i128, share: &Share) {
        let served = virtual_ns * i128::from(share.weight().get());
        self.passing += served - served / 8;
        let (pulls, weights) = self.pulls();
        if self.kind == PolicyKind::Wfq || weights == 0 {
        } else if pulls >= self.passing {
            self.passing = 0;
            self.follow_mean();
        } else {
            let step = self.passing / weights;
            self.now_v += step;
            self.passing -= step * weights;
        }
    }

    pub fn join(&mut self, who: usize, lag: i128, to: Activity, now_ns: u64) {
        self.pass_time(now_ns);
        let start = self.place(lag, &self.threads[who].wanted);
        let request_start = start + self.patience(&self.threads[who].wanted);
        let is_early = !self.is_eligible(request_start);
        self.arrivals += 1;
        let t = &mut self.threads[who];
        if t.activity == Activity::Resting {
            t.since_ns = now_ns;
        }
        t.share = t.wanted;
        t.start = start;
        t.request_start = request_start;
        t.is_early = is_early;
        t.finish = t.start + Self::request(&t.share);
        t.arrival = self.arrivals;
        t.activity = to;
    }

    pub fn rest_lag(&self, who: usize) -> i128 {
        let t = &self.threads[who];
        let limit = Self::limit(&t.wanted);
        let passed = (self.now_v - (t.start + t.kept)).max(0);
        let kept = t.kept.clamp(-limit, limit);
        kept.signum() * (kept.abs() - passed).max(0)
    }

    pub fn lag(&self, who: usize) -> i128 {
        let t = &self.threads[who];
        (self.now_v - t.start).clamp(-Self::limit(&t.share), Self::limit(&t.share))
    }

    pub fn stop(&mut self, who: usize, now_ns: u64) -> u64 {
        self.pass_time(now_ns);
        let t = &mut self.threads[who];
        let elapsed_ns = now_ns - t.since_ns;
        let (ran, fraction) = Self::virtual_of(&t.share, elapsed_ns, t.fraction);
        t.start += ran;
        t.fraction = fraction;
        t.runtime_ns += elapsed_ns;
        t.virtual_ns += ran as u128;
        t.since_ns = now_ns;
        let (more, share) = (ran - self.current_ran, t.share);
        self.current_ran = 0;
        self.serve(more, &share);
        elapsed_ns
    }

    /// A thread ends: under WFQ what it had in advance passes as virtual time. Its running time.
    pub fn end(&mut self, who: usize, now_ns: u64) -> u64 {
        if self.threads[who].activity == Activity::Running {
            self.stop(who, now_ns);
        }
        let t = self.threads[who];
        if t.activity != Activity::Resting && self.kind == PolicyKind::Wfq {
            let ahead = (t.start - self.now_v) * i128::from(t.share.weight().get());
            self.now_v += ahead.max(0) / self.pulls().1;
        }
        t.runtime_ns
    }

    pub fn requeue(&mut self, who: usize, yields: bool, now_ns: u64) -> u64 {
        let elapsed_ns = self.stop(who, now_ns);
        let first = self.first().map(|w| self.threads[w].finish);
        self.arrivals += 1;
        let old = self.threads[who];
        self.threads[who].activity = Activity::Resting;
        if old.share.weight() != old.wanted.weight() {
            let limit = Self::limit(&old.wanted);
            let lag = (self.now_v - old.start).clamp(-limit, limit);
            self.threads[who].start = self.place(lag, &old.wanted);
        }
        let patience = self.patience(&old.wanted);
        let t = &mut self.threads[who];
        t.share = t.wanted;
        t.request_start = t.start + patience;
        t.finish = t.start + Self::request(&t.share);
        let goes_on = self.kind == PolicyKind::Eevdf && old.share == t.share;
        if yields {
            t.finish = t.finish.max(first.unwrap_or(t.finish));
        } else {
            t.preemptions += 1;
            if goes_on && t.start < self.current_finish {
                (t.request_start, t.finish) = (self.current_start, self.current_finish);
            }
        }
        t.arrival = self.arrivals;
        t.since_ns = now_ns;
        t.activity = Activity::Queued;
        let request_start = t.request_start;
        self.threads[who].is_early = !self.is_eligible(request_start);
        elapsed_ns
    }

    pub fn first(&self) -> Option<usize> {
        let queued = |w: &usize| self.threads[*w].activity == Activity::Queued;
        let all = (0..self.threads.len()).filter(queued);
        all.min_by_key(|w| {
            let t = &self.threads[*w];
            (t.is_early, if t.is_early { t.request_start } else { t.finish }, t.arrival)
        })
    }

    pub fn choose(&mut self) -> Option<usize> {
        self.follow_mean();
        for who in 0..self.threads.len() {
            let request_start = self.threads[who].request_start;
            self.threads[who].is_early &= !self.is_eligible(request_start);
        }
        self.first()
    }

    pub fn start(&mut self, who: usize, direct: bool, now_ns: u64) {
        if !direct || now_ns >= self.slice_end_ns {
            self.slice_end_ns = now_ns + QUANTUM_NS;
        }
        let waiting = self.waiting() - usize::from(!direct);
        let t = &mut self.threads[who];
        t.runnable_ns += now_ns - t.since_ns;
        t.since_ns = now_ns;
        t.activity = Activity::Running;
        (self.current_start, self.current_finish) = (t.request_start, t.finish);
        if self.kind == PolicyKind::Wfq && (!direct || waiting == 0) {
            self.now_v = self.now_v.max(t.start);
        }
    }
}
