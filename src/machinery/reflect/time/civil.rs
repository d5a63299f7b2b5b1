//! Days of the Gregorian calendar, counted from 1970-01-01; valid for any year.

/// Days in 400 years.
const ERA_DAYS: i64 = 146_097;

/// How many days after 1970-01-01 this day is. `month` is 1 to 12.
pub(super) fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March here, so that the leap day is the last one.
    let y = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let year_of_era = y.rem_euclid(400);
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    y.div_euclid(400) * ERA_DAYS + day_of_era - 719_468
}

/// Year, month (1 to 12) and day of the month.
pub(super) fn date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let day_of_era = shifted.rem_euclid(ERA_DAYS);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = shifted.div_euclid(ERA_DAYS) * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

/// How many days the month has.
pub(super) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_four_eras_comes_back() {
        assert_eq!(days(1970, 1, 1), 0);
        assert_eq!(days(2000, 3, 1), 11_017);
        assert_eq!(days(1, 1, 1), -719_162);
        for n in -800_000..800_000 {
            let (y, m, d) = date(n);
            assert_eq!(days(y, m, d), n);
            assert!((1..=days_in_month(y, m)).contains(&d));
        }
    }
}
