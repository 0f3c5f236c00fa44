//! An entity of any kind.

use std::borrow::Cow;
use std::sync::Arc;

use model::Timestamp;
use uuid::Uuid;

use super::asset::{Asset, AssetProfile};
use super::customer::Customer;
use super::entity::{Device, Profile, Tenant};
use super::entity_view::EntityView;
use super::page::Listed;
use super::user::User;
use crate::entity_id::{EntityId, EntityKind};

/// An entity of any kind. A clone is a clone of an `Arc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entity {
    Tenant(Arc<Tenant>),
    Customer(Arc<Customer>),
    User(Arc<User>),
    Device(Arc<Device>),
    DeviceProfile(Arc<Profile>),
    Asset(Arc<Asset>),
    AssetProfile(Arc<AssetProfile>),
    EntityView(Arc<EntityView>),
}

impl Entity {
    /// The kind and the id.
    pub fn id(&self) -> EntityId {
        EntityId { kind: self.kind(), id: self.listed().id() }
    }

    pub fn kind(&self) -> EntityKind {
        match self {
            Self::Tenant(_) => EntityKind::Tenant,
            Self::Customer(_) => EntityKind::Customer,
            Self::User(_) => EntityKind::User,
            Self::Device(_) => EntityKind::Device,
            Self::DeviceProfile(_) => EntityKind::DeviceProfile,
            Self::Asset(_) => EntityKind::Asset,
            Self::AssetProfile(_) => EntityKind::AssetProfile,
            Self::EntityView(_) => EntityKind::EntityView,
        }
    }

    /// The tenant that it belongs to; a tenant belongs to itself.
    pub fn tenant(&self) -> Uuid {
        self.listed().tenant()
    }

    /// The customer that it is assigned to, that a user belongs to, or that it is.
    pub fn customer(&self) -> Option<Uuid> {
        match self {
            Self::Customer(customer) => Some(customer.id),
            Self::User(user) => user.customer,
            Self::Device(device) => device.customer,
            Self::Asset(asset) => asset.customer,
            Self::EntityView(view) => view.customer,
            Self::Tenant(_) | Self::DeviceProfile(_) | Self::AssetProfile(_) => None,
        }
    }

    /// The name, the title of a customer, or the login of a user.
    pub fn name(&self) -> &str {
        self.listed().name()
    }

    /// When it was added.
    pub fn created_at(&self) -> Timestamp {
        self.listed().created_at()
    }

    /// The name of the profile of a device or an asset, or the type of an entity view.
    pub fn type_name(&self) -> Option<&str> {
        match self {
            Self::Device(device) => Some(&device.profile.name),
            Self::Asset(asset) => Some(&asset.profile.name),
            Self::EntityView(view) => Some(&view.kind),
            _ => None,
        }
    }

    /// The label of a device or an asset.
    pub fn label(&self) -> Option<&str> {
        self.listed().label()
    }

    /// ThingsBoard's `additionalInfo` as JSON text.
    pub fn additional_info(&self) -> Option<Cow<'_, str>> {
        let text = match self {
            Self::Device(device) => {
                let info = device.info();
                return (!info.is_null()).then(|| info.to_string().into());
            }
            Self::Tenant(tenant) => &tenant.additional_info,
            Self::Customer(customer) => &customer.additional_info,
            Self::User(user) => &user.additional_info,
            Self::Asset(asset) => &asset.additional_info,
            Self::EntityView(view) => &view.additional_info,
            Self::DeviceProfile(_) | Self::AssetProfile(_) => return None,
        };
        text.as_deref().map(Cow::Borrowed)
    }

    fn listed(&self) -> &dyn Listed {
        match self {
            Self::Tenant(tenant) => &**tenant,
            Self::Customer(customer) => &**customer,
            Self::User(user) => &**user,
            Self::Device(device) => &**device,
            Self::DeviceProfile(profile) => &**profile,
            Self::Asset(asset) => &**asset,
            Self::AssetProfile(profile) => &**profile,
            Self::EntityView(view) => &**view,
        }
    }
}
