//! Concurrency limits of levels: their parts of the server's seats by their shares, and what levels lend each other by
//! what they were seen to need.

use super::integrator::Statistics;
use super::spec::{Discipline, LevelSpec};

/// How much of a level's past need counts as need still, each time seats are shared out anew.
const SMOOTHING: f64 = 0.977;

/// The seats that the configuration gives a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    pub nominal: u32,
    /// What it keeps whatever others need.
    pub least: u32,
    /// What it gets whatever it needs.
    pub most: u32,
}

/// Shares the server's seats out by the levels' shares.
pub fn bounds<'a>(levels: impl Iterator<Item = &'a LevelSpec> + Clone, server: u32) -> Vec<Bounds> {
    let all: u64 = levels.clone().map(|level| u64::from(level.shares)).sum();
    let of = |level: &LevelSpec| {
        let nominal = (u64::from(server) * u64::from(level.shares)).div_ceil(all.max(1));
        let nominal = u32::try_from(nominal).unwrap_or(u32::MAX);
        let percent = |percent: u32| (f64::from(nominal) * f64::from(percent) / 100.0).round() as u32;
        let borrowed = level.borrowing_percent.map_or(server, percent);
        Bounds {
            nominal,
            least: nominal.saturating_sub(percent(level.lendable_percent)),
            most: nominal.saturating_add(borrowed),
        }
    };
    levels.map(of).collect()
}

/// What a level needed, smoothed: a new need counts at once, one that is gone goes on counting for a while.
pub fn smoothed(before: f64, period: &Statistics) -> f64 {
    let envelope = (period.average + period.deviation).min(period.highest);
    envelope.max(SMOOTHING * before + (1.0 - SMOOTHING) * envelope)
}

/// A level, when seats are shared out anew.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    pub bounds: Bounds,
    pub is_exempt: bool,
    /// The most seats that it could have used at once in the last period.
    pub highest: f64,
    pub smoothed: f64,
}

impl Need {
    pub fn of(spec: &LevelSpec, bounds: Bounds, highest: f64, smoothed: f64) -> Need {
        Need {
            bounds,
            is_exempt: spec.discipline == Discipline::Exempt,
            highest,
            smoothed,
        }
    }

    /// What it keeps, needing that much.
    fn least(&self) -> f64 {
        let wanted = self.highest.min(f64::from(self.bounds.nominal));
        wanted.max(f64::from(self.bounds.least))
    }

    fn target(&self) -> f64 {
        self.smoothed.max(self.least())
    }

    /// What it gets of a fraction of its target.
    fn part(&self, fraction: f64) -> f64 {
        let most = f64::from(self.bounds.most).max(self.least());
        (fraction * self.target()).clamp(self.least(), most)
    }
}

/// The outcome of sharing out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shared {
    /// The part of its target that each level gets that neither bound stops.
    pub fraction: f64,
    /// Each level's target and its seats, in the order of the needs.
    pub levels: Vec<(f64, u32)>,
}

/// Shares out all seats: each level gets the same fraction of what it wants, within its bounds. Exempt levels take what
/// they need of themselves.
pub fn share(needs: &[Need]) -> Shared {
    let limited = || needs.iter().filter(|need| !need.is_exempt);
    let all: f64 = needs.iter().map(|need| f64::from(need.bounds.nominal)).sum();
    let taken: f64 = needs.iter().filter(|n| n.is_exempt).map(Need::least).sum();
    let left = (all - taken).max(0.0);
    // Where all levels need all of their own seats, nobody lends.
    let settled = limited().all(|need| need.least() >= f64::from(need.bounds.nominal));
    let fraction = match settled {
        true => 1.0,
        false => fair_fraction(&limited().collect::<Vec<_>>(), left),
    };
    let of = |need: &Need| {
        let seats = match (need.is_exempt, settled) {
            (true, _) => need.highest.max(f64::from(need.bounds.least)),
            (false, true) => f64::from(need.bounds.nominal),
            (false, false) => need.part(fraction),
        };
        (need.target(), seats.round() as u32)
    };
    Shared {
        fraction,
        levels: needs.iter().map(of).collect(),
    }
}

/// The fraction of their targets with which these levels get so many seats together. What they get grows with it, in a
/// straight line between the points where one of them reaches a bound.
fn fair_fraction(needs: &[&Need], seats: f64) -> f64 {
    let total = |fraction: f64| needs.iter().map(|need| need.part(fraction)).sum::<f64>();
    let mut points: Vec<f64> = needs
        .iter()
        .filter(|need| need.target() > 0.0)
        .flat_map(|need| {
            let most = f64::from(need.bounds.most).max(need.least());
            [need.least() / need.target(), most / need.target()]
        })
        .collect();
    points.sort_by(f64::total_cmp);
    let (mut from, mut at_from) = (0.0, total(0.0));
    for to in points {
        let at_to = total(to);
        if at_to >= seats && at_to > at_from {
            return from + (to - from) * ((seats - at_from) / (at_to - at_from)).max(0.0);
        }
        (from, at_from) = (to, at_to);
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flowcontrol::spec::Queuing;

    fn level(shares: u32, lendable_percent: u32) -> LevelSpec {
        LevelSpec {
            name: String::new(),
            uid: String::new(),
            discipline: Discipline::Queue(Queuing {
                queues: 64,
                hand_size: 6,
                length_limit: 50,
            }),
            shares,
            lendable_percent,
            borrowing_percent: None,
        }
    }

    /// Those of a fresh server, catch-all first.
    fn suggested() -> Vec<LevelSpec> {
        let exempt = LevelSpec {
            discipline: Discipline::Exempt,
            ..level(0, 0)
        };
        let others = [(5, 0), (20, 50), (10, 0), (40, 25), (30, 33), (40, 50), (100, 90)];
        let mut levels: Vec<_> = others
            .into_iter()
            .map(|(shares, lendable)| level(shares, lendable))
            .collect();
        levels.push(exempt);
        levels
    }

    fn needs(levels: &[LevelSpec], smoothed: &[f64]) -> Vec<Need> {
        let all = bounds(levels.iter(), 600);
        let each = levels.iter().zip(all).zip(smoothed);
        each.map(|((level, bounds), need)| Need::of(level, bounds, *need, *need))
            .collect()
    }

    /// What a kube-apiserver with default flags shows in its metrics.
    #[test]
    fn shares_become_seats() {
        let all = bounds(suggested().iter(), 600);
        let row = |f: fn(&Bounds) -> u32| all.iter().map(f).collect::<Vec<_>>();
        assert_eq!(row(|b| b.nominal), [13, 49, 25, 98, 74, 98, 245, 0]);
        assert_eq!(row(|b| b.least), [13, 24, 25, 73, 50, 49, 24, 0]);
        assert_eq!(row(|b| b.most), [613, 649, 625, 698, 674, 698, 845, 600]);
        let lender = LevelSpec {
            borrowing_percent: Some(30),
            ..level(10, 0)
        };
        assert_eq!(
            bounds([lender].iter(), 10)[0],
            Bounds {
                nominal: 10,
                least: 10,
                most: 13
            }
        );
    }

    /// Likewise.
    #[test]
    fn an_idle_server_shares_out_what_may_be_lent() {
        let levels = suggested();
        let shared = share(&needs(&levels, &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0]));
        assert_eq!(shared.fraction, 602.0 / 258.0);
        let seats: Vec<u32> = shared.levels.iter().map(|(_, seats)| *seats).collect();
        assert_eq!(seats, [30, 56, 58, 170, 117, 114, 56, 2]);
    }

    #[test]
    fn who_needs_more_borrows_from_who_needs_less() {
        let levels = suggested();
        let seats = |wanted: &[f64]| -> Vec<u32> {
            share(&needs(&levels, wanted))
                .levels
                .iter()
                .map(|(_, seats)| *seats)
                .collect()
        };
        let greedy = seats(&[0.0, 900.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        // Everyone else is left what it does not lend.
        assert_eq!(greedy, [13, 368, 25, 73, 50, 49, 24, 0]);
        let two = seats(&[0.0, 600.0, 0.0, 0.0, 0.0, 0.0, 600.0, 0.0]);
        assert!(two[1] >= 49 && two[6] >= 245 && two[1] + two[6] <= 393, "{two:?}");
        // Nobody has anything to lend.
        assert_eq!(seats(&[900.0; 8])[..7], [13, 49, 25, 98, 74, 98, 245]);
    }

    #[test]
    fn bounds_of_borrowing_hold() {
        let mut levels = suggested();
        levels[1].borrowing_percent = Some(100);
        let shared = share(&needs(&levels, &[0.0, 900.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]));
        assert_eq!(shared.levels[1].1, 98);
        assert!(shared.levels[6].1 > 24);
    }

    #[test]
    fn need_comes_at_once_and_goes_slowly() {
        let busy = Statistics {
            average: 50.0,
            deviation: 10.0,
            highest: 55.0,
        };
        assert_eq!(smoothed(0.0, &busy), 55.0);
        let idle = Statistics::default();
        let mut need = 55.0;
        for _ in 0..30 {
            need = smoothed(need, &idle);
        }
        // After five minutes half of it is gone.
        assert!((27.0..28.0).contains(&need), "{need}");
    }
}
