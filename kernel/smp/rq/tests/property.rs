//! The intrusive trees against a BTreeMap, on strings of random operations.
use core_sched::{CpuId, Entry, Ordered};
use core_sched_policy::{Share, Tag, VirtualTime, Weight};
use smp_rq::{Node, NodeRef, Tree};
use std::collections::BTreeMap;
use test_property::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    Insert { who: usize, offset: u64, length: u64 },
    Settle { offset: u64 },
    Remove { who: usize },
    PopFirst,
    ReplaceFirst { who: usize, offset: u64, length: u64 },
}

fn op(nodes: usize) -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..nodes, 0u64..200, 0u64..50)
            .prop_map(|(who, offset, length)| Op::Insert { who, offset, length }),
        1 => (0u64..200).prop_map(|offset| Op::Settle { offset }),
        2 => (0..nodes).prop_map(|who| Op::Remove { who }),
        2 => Just(Op::PopFirst),
        2 => (0..nodes, 0u64..200, 0u64..50)
            .prop_map(|(who, offset, length)| Op::ReplaceFirst { who, offset, length }),
    ]
}

fn entry(base: u64, offset: u64, length: u64, sequence: u64) -> Entry {
    let start = VirtualTime::from_bits(base.wrapping_add(offset));
    let tag = Tag { start, finish: start.after(length) };
    Entry { tag, sequence, weight: Weight::DEFAULT, moved_ns: sequence }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn tree_is_a_sorted_map(
        base in prop_oneof![Just(0u64), Just(u64::MAX - 100), any::<u64>()],
        ops in prop::collection::vec(op(24), 1..160),
    ) {
        let home = CpuId::new(3).unwrap();
        let nodes: Vec<_> = (0..24).map(|n| Node::new(n, Share::default(), home)).collect();
        let mut tree = Tree::new(home);
        let mut other = Tree::new(CpuId::new(4).unwrap());
        // Eligible ones by finish, then the others by start, as offsets, which do not wrap; then
        // by arrival.
        let mut model: BTreeMap<(bool, u64, u64), (usize, Entry)> = BTreeMap::new();
        let mut now = 0;
        for (sequence, op) in ops.into_iter().enumerate() {
            let sequence = sequence as u64;
            match op {
                Op::Insert { who, offset, length } => {
                    if !model.values().any(|v| v.0 == who) {
                        let e = entry(base, offset, length, sequence);
                        if offset <= now {
                            tree.insert(NodeRef(&nodes[who]), e);
                            model.insert((false, offset + length, sequence), (who, e));
                        } else {
                            tree.insert_early(NodeRef(&nodes[who]), e);
                            model.insert((true, offset, sequence), (who, e));
                        }
                    }
                }
                Op::Settle { offset } => {
                    now = now.max(offset);
                    tree.settle(VirtualTime::from_bits(base.wrapping_add(now)));
                    let due: Vec<_> =
                        model.range((true, 0, 0)..=(true, now, u64::MAX)).map(|e| *e.0).collect();
                    for key in due {
                        let (who, e) = model.remove(&key).unwrap();
                        let finish = e.tag.finish.to_bits().wrapping_sub(base);
                        model.insert((false, finish, e.sequence), (who, e));
                    }
                }
                Op::Remove { who } => {
                    let key = model.iter().find(|(_, v)| v.0 == who).map(|(k, _)| *k);
                    let want = key.and_then(|k| model.remove(&k)).map(|v| v.1);
                    prop_assert_eq!(other.remove(NodeRef(&nodes[who])), None);
                    prop_assert_eq!(tree.remove(NodeRef(&nodes[who])), want);
                }
                Op::PopFirst => {
                    let want = model.pop_first().map(|(_, v)| v);
                    let got = tree.first();
                    prop_assert_eq!(got.map(|(n, e)| (n.0.thread() as usize, e)), want);
                    if let Some((item, e)) = got {
                        prop_assert_eq!(tree.remove(item), Some(e));
                    }
                }
                Op::ReplaceFirst { who, offset, length } => {
                    let first = model.first_key_value().filter(|(key, _)| !key.0);
                    let (Some((&key, &(out, _))), true) = (first, offset <= now) else { continue };
                    if !model.values().any(|v| v.0 == who) {
                        let e = entry(base, offset, length, sequence);
                        tree.replace_first(NodeRef(&nodes[who]), e);
                        model.remove(&key);
                        model.insert((false, offset + length, sequence), (who, e));
                        prop_assert_eq!(tree.entry(NodeRef(&nodes[out])), None);
                        prop_assert_eq!(tree.remove(NodeRef(&nodes[out])), None);
                    }
                }
            }
            let mut next = tree.first();
            for ((is_early, ..), (who, e)) in &model {
                let (item, found) = next.expect("the tree has as many as the model");
                prop_assert_eq!((item.0.thread() as usize, found), (*who, *e));
                prop_assert_eq!(tree.entry(item), Some(*e));
                prop_assert_eq!(tree.is_early(item), *is_early);
                prop_assert_eq!(other.entry(item), None);
                prop_assert_eq!(other.after(item), None);
                next = tree.after(item);
            }
            prop_assert_eq!(next, None);
        }
    }
}
