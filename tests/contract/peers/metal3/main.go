// Asks a bare metal API through gophercloud what Metal3's baremetal-operator asks, in its order, for one host from
// its registration to its end. Prints what it did; ends with 1 and the reason when an answer is not what the operator
// could go on with.
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gophercloud/gophercloud"
	"github.com/gophercloud/gophercloud/openstack/baremetal/httpbasic"
	"github.com/gophercloud/gophercloud/openstack/baremetal/noauth"
	"github.com/gophercloud/gophercloud/openstack/baremetal/v1/drivers"
	"github.com/gophercloud/gophercloud/openstack/baremetal/v1/nodes"
	"github.com/gophercloud/gophercloud/openstack/baremetal/v1/ports"
)

const (
	name = "metal3~host-0"
	mac  = "52:54:00:c0:47:33"
	// The operator's own: what it needs at least, and the newest it makes use of.
	baseline, newest = "1.81", "1.95"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "metal3:", err)
		os.Exit(1)
	}
}

func run(endpoint string) error {
	client, err := connect(endpoint + "/v1/")
	if err != nil {
		return err
	}
	for _, version := range []string{baseline, newest} {
		client.Microversion = version
		if err := host(client); err != nil {
			return fmt.Errorf("microversion %s: %w", version, err)
		}
		fmt.Println("microversion", version, "ok")
	}
	return nil
}

// connect with what `anneal env` prints.
func connect(endpoint string) (*gophercloud.ServiceClient, error) {
	if os.Getenv("OS_AUTH_TYPE") != "http_basic" {
		return noauth.NewBareMetalNoAuth(noauth.EndpointOpts{IronicEndpoint: endpoint})
	}
	return httpbasic.NewBareMetalHTTPBasic(httpbasic.EndpointOpts{
		IronicEndpoint:     endpoint,
		IronicUser:         os.Getenv("OS_USERNAME"),
		IronicUserPassword: os.Getenv("OS_PASSWORD"),
	})
}

// host is registered, inspected, provisioned, deprovisioned and deleted.
func host(client *gophercloud.ServiceClient) error {
	if err := absent(client); err != nil {
		return err
	}
	node, err := register(client)
	if err != nil {
		return fmt.Errorf("register: %w", err)
	}
	if err := inspect(client, node.UUID); err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	if err := provision(client, node.UUID); err != nil {
		return fmt.Errorf("provision: %w", err)
	}
	if err := power(client, node.UUID); err != nil {
		return fmt.Errorf("power: %w", err)
	}
	if err := deprovision(client, node.UUID); err != nil {
		return fmt.Errorf("deprovision: %w", err)
	}
	return absent(client)
}

// absent: neither a node of that name nor a port of that address.
func absent(client *gophercloud.ServiceClient) error {
	found := drivers.ListDrivers(client, drivers.ListDriversOpts{})
	page, err := found.AllPages()
	if err != nil {
		return fmt.Errorf("drivers: %w", err)
	}
	if all, err := drivers.ExtractDrivers(page); err != nil || len(all) == 0 {
		return fmt.Errorf("drivers: %v %w", all, err)
	}
	if _, err := nodes.Get(client, name).Extract(); !isNotFound(err) {
		return fmt.Errorf("a node before it is registered: %w", err)
	}
	ports, err := portsOf(client, ports.ListOpts{Address: mac, Fields: []string{"node_uuid"}})
	if err == nil && len(ports) != 0 {
		err = errors.New("a port of it is there already")
	}
	return err
}

func portsOf(client *gophercloud.ServiceClient, opts ports.ListOpts) ([]ports.Port, error) {
	page, err := ports.List(client, opts).AllPages()
	if err != nil {
		return nil, fmt.Errorf("ports: %w", err)
	}
	return ports.ExtractPorts(page)
}

// creation has what the operator sends and this release of gophercloud does not know yet.
type creation struct {
	nodes.CreateOpts
	microversion string
}

func (opts creation) ToNodeCreateMap() (map[string]interface{}, error) {
	body, err := opts.CreateOpts.ToNodeCreateMap()
	if err == nil {
		body["automated_clean"] = true
		if opts.microversion == newest {
			body["firmware_interface"] = "no-firmware"
			body["disable_power_off"] = false
		}
	}
	return body, err
}

func register(client *gophercloud.ServiceClient) (*nodes.Node, error) {
	node, err := nodes.Create(client, creation{nodes.CreateOpts{
		Driver:              "fake-hardware",
		BootInterface:       "fake",
		DeployInterface:     "fake",
		InspectInterface:    "fake",
		ManagementInterface: "fake",
		PowerInterface:      "fake",
		RAIDInterface:       "no-raid",
		VendorInterface:     "no-vendor",
		Name:                name,
		DriverInfo:          map[string]interface{}{"deploy_kernel": "http://127.0.0.1/k", "password": "hunter2"},
		Properties:          map[string]interface{}{"capabilities": "boot_mode:uefi", "cpu_arch": "x86_64"},
	}, client.Microversion}).Extract()
	if err != nil {
		return nil, err
	}
	if node.ProvisionState != string(nodes.Enroll) || node.Name != name || node.DriverInfo["password"] != "******" {
		return nil, fmt.Errorf("the new node is %+v", node)
	}
	pxe := true
	port, err := ports.Create(client, ports.CreateOpts{NodeUUID: node.UUID, Address: mac, PXEEnabled: &pxe}).Extract()
	if err != nil {
		return nil, fmt.Errorf("port: %w", err)
	}
	if port.NodeUUID != node.UUID || port.Address != mac || !port.PXEEnabled {
		return nil, fmt.Errorf("the new port is %+v", port)
	}
	found, err := portsOf(client, ports.ListOpts{Address: mac, Fields: []string{"node_uuid"}})
	if err != nil || len(found) != 1 || found[0].NodeUUID != node.UUID {
		return nil, fmt.Errorf("the node of its port: %+v %w", found, err)
	}
	if err := walk(client, node.UUID, nodes.ProvisionStateOpts{Target: nodes.TargetManage}, nodes.Manageable); err != nil {
		return nil, err
	}
	_, err = update(client, node.UUID, nodes.UpdateOpts{
		set("/driver_info/deploy_ramdisk", "http://127.0.0.1/r"),
		set("/automated_clean", false),
		set("/automated_clean", true),
	})
	return node, err
}

func inspect(client *gophercloud.ServiceClient, uuid string) error {
	if err := walk(client, uuid, nodes.ProvisionStateOpts{Target: nodes.TargetInspect}, nodes.Manageable); err != nil {
		return err
	}
	var found struct {
		Inventory struct {
			CPU struct {
				Count int `json:"count"`
			} `json:"cpu"`
		} `json:"inventory"`
	}
	_, err := client.Get(client.ServiceURL("nodes", uuid, "inventory"), &found, nil)
	if err == nil && found.Inventory.CPU.Count == 0 {
		err = fmt.Errorf("the inventory is %+v", found)
	}
	return err
}

func provision(client *gophercloud.ServiceClient, uuid string) error {
	const instance = "11111111-2222-4333-8444-555555555555"
	node, err := update(client, uuid, nodes.UpdateOpts{
		set("/instance_uuid", instance),
		set("/instance_info/image_source", "http://127.0.0.1/image.qcow2"),
		set("/instance_info/image_os_hash_algo", "sha256"),
		set("/instance_info/image_os_hash_value", "00"),
		set("/instance_info/image_disk_format", "qcow2"),
		set("/instance_info/capabilities", map[string]interface{}{}),
	})
	if err != nil {
		return err
	}
	if node.InstanceUUID != instance || node.InstanceInfo["image_os_hash_algo"] != "sha256" {
		return fmt.Errorf("instance_info: %+v", node.InstanceInfo)
	}
	if err := walk(client, uuid, nodes.ProvisionStateOpts{Target: nodes.TargetProvide}, nodes.Available); err != nil {
		return err
	}
	valid, err := nodes.Validate(client, uuid).Extract()
	if err != nil {
		return fmt.Errorf("validate: %w", err)
	}
	if !valid.Boot.Result || !valid.Deploy.Result || !valid.Power.Result {
		return fmt.Errorf("validate: %+v", valid)
	}
	drive := nodes.ConfigDrive{
		UserData:    "#cloud-config\n",
		MetaData:    map[string]interface{}{"uuid": instance, "metal3-name": "host-0"},
		NetworkData: map[string]interface{}{"links": []interface{}{}},
	}
	return walk(client, uuid, nodes.ProvisionStateOpts{Target: nodes.TargetActive, ConfigDrive: drive}, nodes.Active)
}

func power(client *gophercloud.ServiceClient, uuid string) error {
	for _, target := range []nodes.TargetPowerState{nodes.PowerOff, nodes.PowerOn, nodes.SoftPowerOff} {
		// As the operator does, ask again while the node is locked.
		opts := nodes.PowerStateOpts{Target: target, Timeout: 30}
		err := poll(func() (bool, error) {
			err := nodes.ChangePowerState(client, uuid, opts).ExtractErr()
			if isConflict(err) {
				return false, nil
			}
			return err == nil, err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		wanted := string(target)
		if target == nodes.SoftPowerOff {
			wanted = string(nodes.PowerOff)
		}
		err = poll(func() (bool, error) {
			node, err := nodes.Get(client, uuid).Extract()
			return err == nil && node.PowerState == wanted && node.TargetPowerState == "", err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
	}
	return nil
}

// fields asks for some of them as later releases of gophercloud do; this one repeats the parameter, which is refused.
type fields string

func (names fields) ToNodeListQuery() (string, error)       { return "?fields=" + string(names), nil }
func (names fields) ToNodeListDetailQuery() (string, error) { return "", nil }

func deprovision(client *gophercloud.ServiceClient, uuid string) error {
	page, err := nodes.List(client, fields("uuid,name,provision_state,instance_uuid")).AllPages()
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	listed, err := nodes.ExtractNodes(page)
	if err != nil || len(listed) != 1 || listed[0].Name != name || listed[0].ProvisionState != string(nodes.Active) {
		return fmt.Errorf("list: %+v %w", listed, err)
	}
	if listed[0].Driver != "" {
		return fmt.Errorf("a field that was not asked for: %+v", listed[0])
	}
	if err := nodes.Delete(client, uuid).ExtractErr(); !isConflict(err) {
		return fmt.Errorf("delete of an active node: %w", err)
	}
	if err := walk(client, uuid, nodes.ProvisionStateOpts{Target: nodes.TargetDeleted}, nodes.Available); err != nil {
		return err
	}
	if err := walk(client, uuid, nodes.ProvisionStateOpts{Target: nodes.TargetManage}, nodes.Manageable); err != nil {
		return err
	}
	return poll(func() (bool, error) {
		err := nodes.Delete(client, uuid).ExtractErr()
		if isConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// isNotFound: 404.
func isNotFound(err error) bool {
	_, ok := err.(gophercloud.ErrDefault404)
	return ok
}

// isConflict: 409, which the operator takes for "later".
func isConflict(err error) bool {
	_, ok := err.(gophercloud.ErrDefault409)
	return ok
}

func set(path string, value interface{}) nodes.UpdateOperation {
	return nodes.UpdateOperation{Op: nodes.AddOp, Path: path, Value: value}
}

// update asks again while the node is locked.
func update(client *gophercloud.ServiceClient, uuid string, opts nodes.UpdateOpts) (*nodes.Node, error) {
	var node *nodes.Node
	err := poll(func() (bool, error) {
		var err error
		node, err = nodes.Update(client, uuid, opts).Extract()
		if isConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("update: %w", err)
	}
	return node, nil
}

// walk asks for a provision state and looks until the node is there without an error.
func walk(client *gophercloud.ServiceClient, uuid string, opts nodes.ProvisionStateOpts, end nodes.ProvisionState) error {
	err := poll(func() (bool, error) {
		err := nodes.ChangeProvisionState(client, uuid, opts).ExtractErr()
		if isConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", opts.Target, err)
	}
	return poll(func() (bool, error) {
		node, err := nodes.Get(client, uuid).Extract()
		if err == nil && node.LastError != "" {
			err = errors.New(node.LastError)
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w", opts.Target, err)
		}
		return node.ProvisionState == string(end) && node.TargetProvisionState == "", nil
	})
}

func poll(done func() (bool, error)) error {
	for begun := time.Now(); time.Since(begun) < 20*time.Second; time.Sleep(50 * time.Millisecond) {
		if ok, err := done(); ok || err != nil {
			return err
		}
	}
	return errors.New("not within 20 s")
}
