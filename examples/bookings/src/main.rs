//! A server of bookings: `cargo run`, then `kubectl create -f booking.yaml`.

use api::rooms_example_com::v1::Booking;
use keelson::prelude::*;

mod api {
    keelson_machinery::include_api!();
}
#[cfg(test)]
mod tests;

const GROUP: &str = "rooms.example.com";
const BOOKINGS: &str = "bookings";

fn main() -> std::process::ExitCode {
    server().run()
}

fn server() -> Server {
    let mut code = KindCode::default();
    code.kind::<Booking>().strategy(BookingStrategy);
    let server = Server::new("bookings").scheme(&api::SCHEME).code(code);
    server.admission(LongBookings).controller(Assignment)
}

/// A booking lasts an hour where nothing is said, and stays in its room.
struct BookingStrategy;

impl Strategy for BookingStrategy {
    type Object = Booking;

    fn prepare_for_create(&self, _: &Context, new: &mut Booking) {
        if new.spec.end.is_zero() {
            new.spec.end = new.spec.start + Duration::from_secs(3600);
        }
    }

    fn validate_change(&self, _: &Context, new: &Booking, old: &Booking) -> ErrorList {
        match new.spec.room == old.spec.room {
            true => ErrorList::default(),
            false => FieldError::forbidden(&Path::new("spec").child("room"), "book another one").into(),
        }
    }
}

/// Who is no manager books a room for four hours at most.
struct LongBookings;

impl Plugin for LongBookings {
    fn name(&self) -> &'static str {
        "LongBookings"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        Handles::VALIDATES.when(scope.is(GROUP, BOOKINGS) && scope.operation != Operation::Delete)
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        let is_manager = attributes.user().groups.iter().any(|group| group == "managers");
        let is_long = |new: &Booking| (new.spec.end - new.spec.start).as_secs() > 4 * 3600;
        if attributes.typed().is_some_and(is_long) && !is_manager {
            return now(Err(attributes.forbidden("four hours are enough")));
        }
        now(Ok(()))
    }
}

/// Gives rooms to the bookings that were made first.
struct Assignment;

impl Controller for Assignment {
    fn name(&self) -> &'static str {
        "assignment"
    }

    fn reconciles(&self) -> GroupResource {
        GroupResource::new(GROUP, BOOKINGS)
    }

    fn watches(&self) -> Vec<GroupResource> {
        vec![self.reconciles()]
    }

    /// What becomes of one booking may concern all others.
    async fn affected(&self, _: &Change, context: &ControllerContext) -> Result<Vec<NamespacedName>, Failure> {
        Ok(context.typed_lister::<Booking>()?.lister.names("").await?)
    }

    async fn reconcile(&self, key: &NamespacedName, context: &ControllerContext) -> Result<Next, Failure> {
        let bookings = context.typed_lister::<Booking>()?;
        let Some(own) = bookings.get(key).await? else {
            return Ok(Next::Done);
        };
        let is_earlier = |other: &Booking| {
            let rank = |one: &Booking| (one.metadata.creation_timestamp, NamespacedName::of(one));
            let overlaps = other.spec.start < own.spec.end && own.spec.start < other.spec.end;
            other.spec.room == own.spec.room && overlaps && rank(other) < rank(&own)
        };
        let phase = match bookings.list("").await?.iter().any(is_earlier) {
            _ if own.spec.end <= context.now() => "Over",
            true => "Waiting",
            false => "Confirmed",
        };
        let objects = context.client().of::<Booking>(&key.namespace)?.subresource("status")?;
        objects
            .update(&key.name, |booking| booking.status.phase = phase.to_owned())
            .await?;
        Ok(Next::at(own.spec.end, context.now()))
    }
}
