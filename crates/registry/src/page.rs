//! Pages of listings: filter, order and bounds are the same for all kinds of entities.

use std::cmp::Ordering;
use std::sync::Arc;

use model::Timestamp;
use model::limits::PAGE_DEVICES_MAX;
use uuid::Uuid;

use super::checks::over_limit;
use super::error::RegistryError;
use crate::entity_id::EntityKind;

/// A property that listings are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortProperty {
    /// The name, by code points.
    #[default]
    Name,
    /// When the entity was added.
    CreatedTime,
    Label,
    /// The name of the profile, or the type.
    Type,
    /// The first name of a user.
    FirstName,
    /// The last name of a user.
    LastName,
    /// The e-mail address of a customer or a tenant.
    Email,
    /// The city of a customer or a tenant.
    City,
    /// The country of a customer or a tenant.
    Country,
}

impl SortProperty {
    /// The property with ThingsBoard's name for it.
    ///
    /// # Errors
    /// Entities of this kind are not sorted by it. The error names the properties that they are sorted by.
    pub fn parse(kind: EntityKind, name: &str) -> Result<Self, RegistryError> {
        let known = Self::of(kind);
        let found = known.iter().find(|(known, _)| *known == name).map(|(_, property)| *property);
        found.ok_or_else(|| {
            let mut names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            names.sort_unstable();
            let reason = format!("is {name:?}; {kind} is sorted by one of {}", names.join(", "));
            RegistryError::Invalid { what: "sortProperty", reason }
        })
    }

    /// The properties of a kind by their names.
    fn of(kind: EntityKind) -> &'static [(&'static str, Self)] {
        use EntityKind::{Asset, Customer, Device, EntityView, Tenant, User};
        match kind {
            Device | Asset => &[
                ("createdTime", Self::CreatedTime),
                ("name", Self::Name),
                ("label", Self::Label),
                ("type", Self::Type),
                ("deviceProfileName", Self::Type),
                ("assetProfileName", Self::Type),
            ],
            EntityView => &[("createdTime", Self::CreatedTime), ("name", Self::Name), ("type", Self::Type)],
            Customer | Tenant => &[
                ("createdTime", Self::CreatedTime),
                ("title", Self::Name),
                ("name", Self::Name),
                ("email", Self::Email),
                ("city", Self::City),
                ("country", Self::Country),
            ],
            User => &[
                ("createdTime", Self::CreatedTime),
                ("email", Self::Name),
                ("name", Self::Name),
                ("firstName", Self::FirstName),
                ("lastName", Self::LastName),
            ],
            _ => &[("createdTime", Self::CreatedTime), ("name", Self::Name)],
        }
    }
}

/// A request for a page of a listing.
#[derive(Debug, Clone, Copy, Default)]
pub struct PageRequest<'a> {
    /// Number of the page, from 0.
    pub page: usize,
    /// Entries per page, 1 to [`model::limits::PAGE_DEVICES_MAX`].
    pub page_size: usize,
    /// Only entries whose name or label contains this text, ignoring case; all when it is `None` or empty.
    pub filter: Option<&'a str>,
    /// The order. Entries with the same value are in the order of their ids.
    pub sort: SortProperty,
    /// Whether the last comes first.
    pub descending: bool,
}

impl PageRequest<'_> {
    pub(super) fn check(&self) -> Result<(), RegistryError> {
        if self.page_size == 0 {
            let reason = format!("is 0; ask for 1 to {PAGE_DEVICES_MAX} entries");
            return Err(RegistryError::Invalid { what: "page size", reason });
        }
        over_limit("page size", self.page_size, PAGE_DEVICES_MAX)
    }
}

/// A page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    pub data: Vec<T>,
    /// Number of pages.
    pub total_pages: usize,
    /// Number of entries on all pages.
    pub total_elements: usize,
    /// Whether a page follows.
    pub has_next: bool,
}

impl<T> Page<T> {
    /// The page of a request, of all entries in their order.
    pub fn of(all: impl ExactSizeIterator<Item = T>, page: usize, page_size: usize) -> Self {
        let total = all.len();
        let skipped = page.saturating_mul(page_size);
        let data: Vec<T> = all.skip(skipped).take(page_size).collect();
        let has_next = !data.is_empty() && skipped.saturating_add(data.len()) < total;
        Self { data, total_pages: total.div_ceil(page_size.max(1)), total_elements: total, has_next }
    }
}

/// An entity in a listing.
pub trait Listed {
    /// Identity.
    fn id(&self) -> Uuid;
    fn tenant(&self) -> Uuid;
    /// Its name, title or login; unique in the tenant among entities of the kind.
    fn name(&self) -> &str;
    /// When it was added.
    fn created_at(&self) -> Timestamp;
    fn label(&self) -> Option<&str> {
        None
    }
    /// The text of a property other than [`SortProperty::CreatedTime`].
    fn text(&self, property: SortProperty) -> Option<&str> {
        match property {
            SortProperty::Label => self.label(),
            _ => Some(self.name()),
        }
    }
}

/// The page of a request over entities of one tenant that come sorted by name.
pub(super) fn page_of<'a, T: Listed + 'a>(
    by_name: impl Iterator<Item = &'a Arc<T>>,
    request: &PageRequest<'_>,
) -> Page<Arc<T>> {
    let filter = request.filter.filter(|text| !text.is_empty()).map(str::to_lowercase);
    let matches = |entity: &&Arc<T>| filter.as_deref().is_none_or(|text| contains(&***entity, text));
    let mut found: Vec<&Arc<T>> = by_name.filter(matches).collect();
    match (request.sort, request.descending) {
        (SortProperty::Name, false) => {}
        (SortProperty::Name, true) => found.reverse(),
        (sort, false) => found.sort_unstable_by(|one, other| compare(&***one, &***other, sort)),
        (sort, true) => found.sort_unstable_by(|one, other| {
            // The id is the last key in both directions.
            compare_values(&***other, &***one, sort).then_with(|| one.id().cmp(&other.id()))
        }),
    }
    let Page { data, total_pages, total_elements, has_next } =
        Page::of(found.into_iter(), request.page, request.page_size);
    Page { data: data.into_iter().cloned().collect(), total_pages, total_elements, has_next }
}

/// Like `page_of` for entities that the registry does not have.
///
/// # Errors
/// The request is for a page that cannot be.
pub fn page_of_all<'a, T: Listed + 'a>(
    by_name: impl Iterator<Item = &'a Arc<T>>,
    request: &PageRequest<'_>,
) -> Result<Page<Arc<T>>, RegistryError> {
    request.check()?;
    Ok(page_of(by_name, request))
}

/// Whether the name or the label of an entity contains a text in lower case.
fn contains(entity: &impl Listed, text: &str) -> bool {
    entity.name().to_lowercase().contains(text)
        || entity.label().is_some_and(|label| label.to_lowercase().contains(text))
}

fn compare<T: Listed>(one: &T, other: &T, sort: SortProperty) -> Ordering {
    compare_values(one, other, sort).then_with(|| one.id().cmp(&other.id()))
}

fn compare_values<T: Listed>(one: &T, other: &T, sort: SortProperty) -> Ordering {
    match sort {
        SortProperty::CreatedTime => one.created_at().cmp(&other.created_at()),
        text => one.text(text).unwrap_or_default().cmp(other.text(text).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Thing(u128, &'static str, i64, Option<&'static str>);

    impl Listed for Thing {
        fn id(&self) -> Uuid {
            Uuid::from_u128(self.0)
        }
        fn tenant(&self) -> Uuid {
            Uuid::nil()
        }
        fn name(&self) -> &str {
            self.1
        }
        fn created_at(&self) -> Timestamp {
            Timestamp::from_micros(self.2)
        }
        fn label(&self) -> Option<&str> {
            self.3
        }
    }

    fn listed(request: PageRequest<'_>) -> (String, usize, usize, bool) {
        let things = [Thing(3, "a", 5, None), Thing(2, "b", 5, Some("Übersee")), Thing(1, "c", 4, Some("x"))];
        let things = things.map(Arc::new);
        let page = page_of(things.iter(), &request);
        let names: String = page.data.iter().map(|thing| thing.1).collect();
        (names, page.total_pages, page.total_elements, page.has_next)
    }

    #[test]
    fn pages_are_sorted_by_the_property_and_then_by_the_id() {
        let all = PageRequest { page_size: 10, ..PageRequest::default() };
        assert_eq!(listed(all).0, "abc");
        assert_eq!(listed(PageRequest { descending: true, ..all }).0, "cba");
        let by_time = PageRequest { sort: SortProperty::CreatedTime, ..all };
        assert_eq!(listed(by_time).0, "cba");
        assert_eq!(listed(PageRequest { descending: true, ..by_time }).0, "bac");
        assert_eq!(listed(PageRequest { sort: SortProperty::Label, ..all }).0, "acb");
    }

    #[test]
    fn pages_beyond_the_end_are_empty_and_labels_are_searched_too() {
        let two = PageRequest { page_size: 2, ..PageRequest::default() };
        assert_eq!(listed(two), ("ab".into(), 2, 3, true));
        assert_eq!(listed(PageRequest { page: 1, ..two }), ("c".into(), 2, 3, false));
        assert_eq!(listed(PageRequest { page: usize::MAX, ..two }), (String::new(), 2, 3, false));
        assert_eq!(listed(PageRequest { filter: Some("üBER"), ..two }), ("b".into(), 1, 1, false));
    }

    #[test]
    fn an_unknown_property_is_refused_with_the_known_ones() {
        assert_eq!(SortProperty::parse(EntityKind::User, "email").unwrap(), SortProperty::Name);
        let refused = SortProperty::parse(EntityKind::EntityView, "label").unwrap_err().to_string();
        assert_eq!(
            refused,
            "the sortProperty is \"label\"; ENTITY_VIEW is sorted by one of createdTime, name, type"
        );
    }
}
