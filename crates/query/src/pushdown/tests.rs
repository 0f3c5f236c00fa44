use arrow_schema::SchemaRef;
use datafusion::logical_expr::{col, lit};
use model::FieldType;
use store::{FieldColumn, TableColumns, TagColumn};

use super::*;

fn schema() -> SchemaRef {
    TableColumns {
        table: "t".try_into().unwrap(),
        tags: vec![TagColumn { tag: "site".into(), column: "site:tag".into() }],
        fields: vec![FieldColumn {
            key: "site".into(),
            field_type: FieldType::String,
            column: "site".into(),
            with_integers: false,
        }],
    }
    .schema()
}

fn micros(value: i64) -> Expr {
    Expr::Literal(ScalarValue::TimestampMicrosecond(Some(value), Some("UTC".into())), None)
}

fn nanoseconds(value: i64) -> Expr {
    Expr::Literal(ScalarValue::TimestampNanosecond(Some(value), Some("UTC".into())), None)
}

fn range(condition: Expr) -> (i64, i64) {
    match push(&condition, &schema()) {
        Some(Pushed::Time { range, exact: true }) => (range.start.micros(), range.end.micros()),
        other => panic!("{condition}: {other:?}"),
    }
}

#[test]
fn a_time_between_two_microseconds_is_rounded_to_the_right_side() {
    let ts = || col("ts");
    assert_eq!(range(ts().gt(nanoseconds(1_500))), (2, i64::MAX));
    assert_eq!(range(ts().gt_eq(nanoseconds(1_500))), (2, i64::MAX));
    assert_eq!(range(ts().gt_eq(nanoseconds(2_000))), (2, i64::MAX));
    assert_eq!(range(ts().gt(nanoseconds(2_000))), (3, i64::MAX));
    assert_eq!(range(ts().lt(nanoseconds(1_500))), (i64::MIN, 2));
    assert_eq!(range(ts().lt_eq(nanoseconds(1_500))), (i64::MIN, 2));
    assert_eq!(range(ts().lt(nanoseconds(2_000))), (i64::MIN, 2));
    assert_eq!(range(ts().lt_eq(nanoseconds(-1_500))), (i64::MIN, -1));
    assert_eq!(range(ts().gt(nanoseconds(-1_500))), (-1, i64::MAX));
    assert_eq!(range(ts().eq(nanoseconds(2_000))), (2, 3));
    let between = range(ts().eq(nanoseconds(1_500)));
    assert!(between.0 >= between.1, "{between:?}");
}

#[test]
fn the_column_may_be_on_either_side_and_in_conjunctions() {
    assert_eq!(range(micros(5).lt_eq(col("ts"))), (5, i64::MAX));
    assert_eq!(range(col("ts").gt_eq(micros(5)).and(col("ts").lt(micros(9)))), (5, 9));
    assert_eq!(range(col("ts").between(micros(5), micros(9))), (5, 10));
}

#[test]
fn alternatives_give_the_range_around_them_and_keep_the_filter() {
    let condition = col("ts").eq(micros(5)).or(col("ts").between(micros(8), micros(9)));
    let Some(Pushed::Time { range, exact: false }) = push(&condition, &schema()) else {
        panic!("{condition}")
    };
    assert_eq!((range.start.micros(), range.end.micros()), (5, 10));
}

#[test]
fn a_field_with_a_tags_name_is_not_a_tag() {
    assert!(push(&col("site").eq(lit("a")), &schema()).is_none());
    let Some(Pushed::Tag(matcher)) = push(&Expr::Column("site:tag".into()).eq(lit("a")), &schema()) else {
        panic!("the tag's column")
    };
    assert_eq!(matcher.tag, "site");
}

#[test]
fn a_time_seen_through_a_date_or_two_zones_is_left_alone() {
    use arrow_schema::{DataType, TimeUnit};
    let cast = |expr: Expr, data_type| Expr::Cast(Cast::new(Box::new(expr), data_type));
    let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some("Europe/Berlin".into()));
    let naive = DataType::Timestamp(TimeUnit::Microsecond, None);
    assert!(push(&cast(col("ts"), DataType::Date32).eq(micros(0)), &schema()).is_none());
    assert!(push(&cast(cast(col("ts"), zoned), naive).gt(micros(0)), &schema()).is_none());
}

#[test]
fn like_patterns_keep_special_characters_apart() {
    assert_eq!(like_pattern("a%b_c", '\\'), "(?s)^a.*b.c$");
    assert_eq!(like_pattern(r"100\%.", '\\'), r"(?s)^100%\.$");
    assert_eq!(like_pattern("a.b*", '\\'), r"(?s)^a\.b\*$");
}
