//! `/v1/nodes`, one file a resource.

pub mod bios;
pub mod boot_device;
pub mod boot_mode;
pub mod children;
mod configdrive;
pub mod console;
pub mod create;
pub mod delete;
pub mod erase_plan;
pub mod firmware;
pub mod history;
pub mod indicators;
pub mod inventory;
pub mod list;
pub mod maintenance;
mod network_data;
pub mod nmi;
pub mod patch;
pub mod power;
pub mod provision;
pub mod raid;
pub mod rights;
pub mod show;
pub mod states;
pub mod steps;
pub mod traits;
pub mod validate;
pub mod validation;
pub mod vifs;
pub mod vmedia;

use crate::endpoint::{Endpoint, rows};
use crate::vendor;

/// What is served of nodes.
pub fn endpoints() -> Vec<Endpoint> {
    let mut rows = rows![
        GET "/v1/nodes" 1 "baremetal:node:list_all", "nodes, a page of them" => list::list;
        POST "/v1/nodes" 1 "baremetal:node:create", "enrol a node" => create::create;
        GET "/v1/nodes/detail" 1 "baremetal:node:list_all", "nodes with all fields" => list::detail;
        GET "/v1/nodes/validate" 1 "baremetal:node:validate", "the same by UUID in the query" => validate::by_query;
        GET "/v1/nodes/{ident}" 1 "baremetal:node:get", "a node" => show::show;
        PATCH "/v1/nodes/{ident}" 1 "baremetal:node:update", "change fields of a node" => patch::patch;
        DELETE "/v1/nodes/{ident}" 1 "baremetal:node:delete", "remove a node" => delete::delete;
        GET "/v1/nodes/{ident}/validate" 1 "baremetal:node:validate", "what its interfaces miss" => validate::validate;
        GET "/v1/nodes/{ident}/states" 1 "baremetal:node:get_states", "its states in short" => states::states;
        PUT "/v1/nodes/{ident}/states/provision" 1 "baremetal:node:set_provision_state", "a verb of the state machine"
            => provision::provision;
        PUT "/v1/nodes/{ident}/states/power" 1 "baremetal:node:set_power_state", "on, off, reboot, hard or soft"
            => power::power;
        PUT "/v1/nodes/{ident}/states/boot_mode" 76 "baremetal:node:set_boot_mode", "BIOS or UEFI, from the next start on"
            => boot_mode::boot_mode;
        PUT "/v1/nodes/{ident}/states/secure_boot" 76 "baremetal:node:set_secure_boot", "secure boot on or off"
            => boot_mode::secure_boot;
        PUT "/v1/nodes/{ident}/states/raid" 12 "baremetal:node:set_raid_state", "the RAID configuration to make"
            => raid::set;
        GET "/v1/nodes/{ident}/states/console" 1 "baremetal:node:get_console", "whether its console is on" => console::show;
        PUT "/v1/nodes/{ident}/states/console" 1 "baremetal:node:set_console_state", "switch it" => console::set;
        PUT "/v1/nodes/{ident}/maintenance" 1 "baremetal:node:set_maintenance", "take out of service" => maintenance::set;
        DELETE "/v1/nodes/{ident}/maintenance" 1 "baremetal:node:clear_maintenance", "put into service"
            => maintenance::unset;
        GET "/v1/nodes/{ident}/management/boot_device" 1 "baremetal:node:get_boot_device", "what it boots from"
            => boot_device::show;
        PUT "/v1/nodes/{ident}/management/boot_device" 1 "baremetal:node:set_boot_device", "set it" => boot_device::set;
        GET "/v1/nodes/{ident}/management/boot_device/supported" 1 "baremetal:node:get_boot_device",
            "what it can boot from" => boot_device::supported;
        PUT "/v1/nodes/{ident}/management/inject_nmi" 29 "baremetal:node:inject_nmi", "a non-maskable interrupt, now"
            => nmi::inject;
        GET "/v1/nodes/{ident}/management/indicators" 63 "baremetal:node:get_indicator_state", "its lamps"
            => indicators::list;
        GET "/v1/nodes/{ident}/management/indicators/{indicator}" 63 "baremetal:node:get_indicator_state",
            "what a lamp does" => indicators::show;
        PUT "/v1/nodes/{ident}/management/indicators/{indicator}" 63 "baremetal:node:set_indicator_state",
            "switch a lamp" => indicators::set;
        GET "/v1/nodes/{ident}/bios" 40 "baremetal:node:bios:get", "settings of its firmware" => bios::list;
        GET "/v1/nodes/{ident}/bios/{setting}" 40 "baremetal:node:bios:get", "one of them" => bios::show;
        GET "/v1/nodes/{ident}/firmware" 86 "baremetal:node:firmware:get", "versions of its firmware" => firmware::list;
        GET "/v1/nodes/{ident}/vmedia" 93 "baremetal:node:vmedia:get", "virtual drives" => vmedia::show;
        POST "/v1/nodes/{ident}/vmedia" 89 "baremetal:node:vmedia:attach", "put an image into one" => vmedia::attach;
        DELETE "/v1/nodes/{ident}/vmedia" 89 "baremetal:node:vmedia:detach", "empty them" => vmedia::detach;
        GET "/v1/nodes/{ident}/children" 83 "baremetal:node:get", "nodes that are parts of it" => children::list;
        GET "/v1/nodes/{ident}/inventory" 81 "baremetal:node:inventory:get", "what inspection found" => inventory::show;
        GET "/v1/nodes/{ident}/history" 78 "baremetal:node:history:get", "its story" => history::list;
        GET "/v1/nodes/{ident}/history/{event}" 78 "baremetal:node:history:get", "one event of it" => history::show;
        GET "/v1/nodes/{ident}/traits" 37 "baremetal:node:traits:list", "its traits" => traits::list;
        PUT "/v1/nodes/{ident}/traits" 37 "baremetal:node:traits:set", "replace them" => traits::replace;
        DELETE "/v1/nodes/{ident}/traits" 37 "baremetal:node:traits:delete", "remove all" => traits::clear;
        PUT "/v1/nodes/{ident}/traits/{trait}" 37 "baremetal:node:traits:set", "add one" => traits::add;
        DELETE "/v1/nodes/{ident}/traits/{trait}" 37 "baremetal:node:traits:delete", "remove one" => traits::remove;
    ];
    let networks = rows![
        GET "/v1/nodes/{ident}/vifs" 28 "baremetal:node:vif:list", "attached networks" => vifs::list;
        POST "/v1/nodes/{ident}/vifs" 28 "baremetal:node:vif:attach", "attach one" => vifs::attach;
        DELETE "/v1/nodes/{ident}/vifs/{vif}" 28 "baremetal:node:vif:detach", "detach one" => vifs::detach;
    ];
    rows.extend(networks.into_iter().map(|row| row.noop(vifs::NOOP)));
    let vendors = rows![
        GET "/v1/nodes/{ident}/vendor_passthru" 1 "baremetal:node:vendor_passthru", "a vendor's method" => vendor::node;
        POST "/v1/nodes/{ident}/vendor_passthru" 1 "baremetal:node:vendor_passthru", "a vendor's method" => vendor::node;
        PUT "/v1/nodes/{ident}/vendor_passthru" 1 "baremetal:node:vendor_passthru", "a vendor's method" => vendor::node;
        PATCH "/v1/nodes/{ident}/vendor_passthru" 1 "baremetal:node:vendor_passthru", "a vendor's method" => vendor::node;
        DELETE "/v1/nodes/{ident}/vendor_passthru" 1 "baremetal:node:vendor_passthru", "a vendor's method" => vendor::node;
        GET "/v1/nodes/{ident}/vendor_passthru/methods" 1 "baremetal:node:vendor_passthru", "which there are"
            => vendor::node_methods;
    ];
    rows.extend(vendors.into_iter().map(|row| row.noop(vendor::NOOP)));
    let own = rows![
        GET "/v1/nodes/{ident}/cleaning/steps" 1 "baremetal:node:get", "clean steps it offers" => steps::cleaning;
        GET "/v1/nodes/{ident}/deploy/steps" 1 "baremetal:node:get", "deploy steps it offers" => steps::deploy;
        GET "/v1/nodes/{ident}/service/steps" 1 "baremetal:node:get", "service steps it offers" => steps::service;
        GET "/v1/anneal/nodes/{ident}/erase_plan" 1 "baremetal:node:inventory:get", "what an erase would do"
            => erase_plan::defaults;
        POST "/v1/anneal/nodes/{ident}/erase_plan" 1 "baremetal:node:inventory:get", "the same with arguments"
            => erase_plan::with_arguments;
    ];
    rows.extend(own.into_iter().map(Endpoint::own));
    rows
}
