//! `/v1/nodes`, one file a resource.

pub mod bios;
pub mod boot_device;
pub mod boot_mode;
pub mod children;
mod configdrive;
pub mod console;
pub mod create;
pub mod delete;
pub mod disks;
pub mod erase_plan;
pub mod filter;
pub mod firmware;
mod hello;
pub mod history;
pub mod indicators;
pub mod inventory;
pub mod list;
pub mod maintenance;
pub mod measurements;
mod network_data;
pub mod nmi;
pub mod patch;
pub mod power;
mod progress;
pub mod provision;
pub mod raid;
mod ramdisk_boot;
pub mod rights;
mod scan;
pub mod show;
pub mod states;
pub mod steps;
pub mod traits;
pub mod validate;
pub mod validation;
pub mod vifs;
pub mod vmedia;
pub mod why;

use crate::endpoint::{Endpoint, rows};
use crate::vendor;

/// Endpoints of nodes.
pub fn endpoints() -> Vec<Endpoint> {
    let mut rows = rows![
        GET "/v1/nodes" 1 "baremetal:node:list_all", "nodes, a page of them" => list::list;
        POST "/v1/nodes" 1 "baremetal:node:create", "enrol a node" => create::create;
        GET "/v1/nodes/detail" 1 "baremetal:node:list_all", "nodes with all fields" => list::detail;
        GET "/v1/nodes/validate" 1 "baremetal:node:validate", "the same by UUID in the query" => validate::by_query;
        GET "/v1/nodes/{ident}" 1 "baremetal:node:get", "a node" => show::show;
        PATCH "/v1/nodes/{ident}" 1 "baremetal:node:update", "change fields of a node" => patch::patch;
        DELETE "/v1/nodes/{ident}" 1 "baremetal:node:delete", "remove a node" => delete::delete;
        GET "/v1/nodes/{ident}/validate" 1 "baremetal:node:validate", "validation of its interfaces" => validate::validate;
        GET "/v1/nodes/{ident}/states" 1 "baremetal:node:get_states", "its states" => states::states;
        PUT "/v1/nodes/{ident}/states/provision" 1 "baremetal:node:set_provision_state", "a verb of the state machine"
            => provision::provision;
        PUT "/v1/nodes/{ident}/states/power" 1 "baremetal:node:set_power_state", "on, off, reboot, hard or soft"
            => power::power;
        PUT "/v1/nodes/{ident}/states/boot_mode" 76 "baremetal:node:set_boot_mode", "BIOS or UEFI, from the next start on"
            => boot_mode::boot_mode;
        PUT "/v1/nodes/{ident}/states/secure_boot" 76 "baremetal:node:set_secure_boot", "secure boot on or off"
            => boot_mode::secure_boot;
        PUT "/v1/nodes/{ident}/states/raid" 12 "baremetal:node:set_raid_state", "its target RAID configuration"
            => raid::set;
        GET "/v1/nodes/{ident}/states/console" 1 "baremetal:node:get_console", "whether its console is on" => console::show;
        PUT "/v1/nodes/{ident}/states/console" 1 "baremetal:node:set_console_state", "switch the console on or off" => console::set;
        PUT "/v1/nodes/{ident}/maintenance" 1 "baremetal:node:set_maintenance", "take out of service" => maintenance::set;
        DELETE "/v1/nodes/{ident}/maintenance" 1 "baremetal:node:clear_maintenance", "put into service"
            => maintenance::unset;
        GET "/v1/nodes/{ident}/management/boot_device" 1 "baremetal:node:get_boot_device", "its boot device"
            => boot_device::show;
        PUT "/v1/nodes/{ident}/management/boot_device" 1 "baremetal:node:set_boot_device", "set it" => boot_device::set;
        GET "/v1/nodes/{ident}/management/boot_device/supported" 1 "baremetal:node:get_boot_device",
            "boot devices it supports" => boot_device::supported;
        PUT "/v1/nodes/{ident}/management/inject_nmi" 29 "baremetal:node:inject_nmi", "a non-maskable interrupt, now"
            => nmi::inject;
        GET "/v1/nodes/{ident}/management/indicators" 63 "baremetal:node:get_indicator_state", "its indicators (LEDs)"
            => indicators::list;
        GET "/v1/nodes/{ident}/management/indicators/{indicator}" 63 "baremetal:node:get_indicator_state",
            "state of an indicator" => indicators::show;
        PUT "/v1/nodes/{ident}/management/indicators/{indicator}" 63 "baremetal:node:set_indicator_state",
            "set an indicator" => indicators::set;
        GET "/v1/nodes/{ident}/bios" 40 "baremetal:node:bios:get", "its BIOS settings" => bios::list;
        GET "/v1/nodes/{ident}/bios/{setting}" 40 "baremetal:node:bios:get", "one of them" => bios::show;
        GET "/v1/nodes/{ident}/firmware" 86 "baremetal:node:firmware:get", "versions of its firmware" => firmware::list;
        GET "/v1/nodes/{ident}/vmedia" 93 "baremetal:node:vmedia:get", "virtual drives" => vmedia::show;
        POST "/v1/nodes/{ident}/vmedia" 89 "baremetal:node:vmedia:attach", "insert an image" => vmedia::attach;
        DELETE "/v1/nodes/{ident}/vmedia" 89 "baremetal:node:vmedia:detach", "eject images" => vmedia::detach;
        GET "/v1/nodes/{ident}/children" 83 "baremetal:node:get", "its child nodes" => children::list;
        GET "/v1/nodes/{ident}/inventory" 81 "baremetal:node:inventory:get", "its inventory" => inventory::show;
        GET "/v1/nodes/{ident}/history" 78 "baremetal:node:history:get", "its history" => history::list;
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
    rows.extend(vendor_passthru());
    rows.extend(extensions());
    rows
}

/// Endpoints of vendors' methods.
fn vendor_passthru() -> Vec<Endpoint> {
    let rows = rows![
        GET "/v1/nodes/{ident}/vendor_passthru" 1 "baremetal:node:vendor_passthru", "a vendor's method" => vendor::node;
        POST "/v1/nodes/{ident}/vendor_passthru" 1 "baremetal:node:vendor_passthru", "a vendor's method" => vendor::node;
        PUT "/v1/nodes/{ident}/vendor_passthru" 1 "baremetal:node:vendor_passthru", "a vendor's method" => vendor::node;
        PATCH "/v1/nodes/{ident}/vendor_passthru" 1 "baremetal:node:vendor_passthru", "a vendor's method" => vendor::node;
        DELETE "/v1/nodes/{ident}/vendor_passthru" 1 "baremetal:node:vendor_passthru", "a vendor's method" => vendor::node;
        GET "/v1/nodes/{ident}/vendor_passthru/methods" 1 "baremetal:node:vendor_passthru", "list of its methods"
            => vendor::node_methods;
    ];
    rows.into_iter().map(|row| row.noop(vendor::NOOP)).collect()
}

/// Endpoints that Ironic does not have.
fn extensions() -> Vec<Endpoint> {
    let rows = rows![
        GET "/v1/nodes/{ident}/cleaning/steps" 1 "baremetal:node:get", "clean steps it offers" => steps::cleaning;
        GET "/v1/nodes/{ident}/deploy/steps" 1 "baremetal:node:get", "deploy steps it offers" => steps::deploy;
        GET "/v1/nodes/{ident}/service/steps" 1 "baremetal:node:get", "service steps it offers" => steps::service;
        GET "/v1/anneal/nodes/{ident}/erase_plan" 1 "baremetal:node:inventory:get", "what an erase would do"
            => erase_plan::defaults;
        POST "/v1/anneal/nodes/{ident}/erase_plan" 1 "baremetal:node:inventory:get", "the same with arguments"
            => erase_plan::with_arguments;
        GET "/v1/anneal/nodes/{ident}/disks" 1 "baremetal:node:inventory:get", "disks that its next erase must report"
            => disks::list;
        POST "/v1/anneal/nodes/{ident}/disks/retire" 1 "anneal:node:disks:retire", "accept that a disk has left it"
            => disks::retire;
        GET "/v1/anneal/nodes/{ident}/measurements" 1 "anneal:node:measurements:get", "its TPM, and what its boots must measure"
            => measurements::show;
        POST "/v1/anneal/nodes/{ident}/measurements/accept" 1 "anneal:node:measurements:accept",
            "accept what its last boot measured" => measurements::accept;
        DELETE "/v1/anneal/nodes/{ident}/measurements" 1 "anneal:node:measurements:accept", "forget its TPM"
            => measurements::forget;
        GET "/v1/anneal/nodes/{ident}/why" 1 "baremetal:node:get", "what it waits for, and which command helps" => why::show;
        GET "/v1/anneal/nodes/{ident}/progress" 1 "baremetal:node:get", "where it stands and how far its run is, also as a stream"
            => progress::show;
    ];
    rows.into_iter().map(Endpoint::own).collect()
}
