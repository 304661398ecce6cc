"""What nova-compute asks of Nova's own driver for bare metal, from an instance's birth to its end.

Everything between the driver and the API is Nova's. Of Nova's database, which a compute service reaches through its conductor, two
lists are stood in for: the compute services (none besides this one) and the instances of this host. Instances live in memory.

usage: nova.py ENDPOINT
"""
import os
import sys
from unittest import mock

os.environ['OS_NOVA_DISABLE_EVENTLET_PATCHING'] = 'true'

from oslo_service import backend  # noqa: E402

backend.init_backend(backend.BackendType.THREADING)

import openstack  # noqa: E402
import nova.conf  # noqa: E402
from nova import config  # noqa: E402,F401
from nova import context  # noqa: E402
from nova import objects  # noqa: E402
from nova.compute import power_state  # noqa: E402
from nova.compute import provider_tree  # noqa: E402
from nova.network import model as network_model  # noqa: E402
from nova.virt import driver as virt_driver  # noqa: E402,F401
from nova.virt.ironic import driver  # noqa: E402

SETTINGS = f'''[DEFAULT]
host = compute-1
[ironic]
auth_type = {os.environ['OS_AUTH_TYPE']}
endpoint = {os.environ['OS_ENDPOINT']}
endpoint_override = {sys.argv[1]}
username = {os.environ.get('OS_USERNAME', '')}
password = {os.environ.get('OS_PASSWORD', '')}
api_retry_interval = 1
'''
with open('nova.conf', 'w') as file:
    file.write(SETTINGS)
CONF = nova.conf.CONF
CONF(['--config-file', 'nova.conf'], project='nova')
objects.register_all()

auth = {'endpoint': os.environ['OS_ENDPOINT']}
if os.environ['OS_AUTH_TYPE'] == 'http_basic':
    auth.update(username=os.environ['OS_USERNAME'], password=os.environ['OS_PASSWORD'])
api = openstack.connect(load_envvars=False, auth_type=os.environ['OS_AUTH_TYPE'], auth=auth,
                        baremetal_endpoint_override=sys.argv[1]).baremetal
node = api.create_node(driver='fake-hardware', name='metal', resource_class='gold', provision_state='enroll',
                       properties={'cpus': 4, 'memory_mb': 8192, 'local_gb': 100, 'cpu_arch': 'x86_64'})
for verb in ('manage', 'provide'):
    api.set_node_provision_state(node, verb, wait=True, timeout=60)
api.set_node_power_state(node, 'power off', wait=True, timeout=60)
api.create_port(node_uuid=node.id, address='52:54:00:c0:47:31')
api.set_node_traits(node, ['CUSTOM_GOLD'])

admin = context.get_admin_context()
here = []
mock.patch.object(objects.ServiceList, 'get_all_computes_by_hv_type', lambda *_: []).start()
mock.patch.object(objects.InstanceList, 'get_uuids_by_host', lambda *_: [one.uuid for one in here]).start()
for change in ('refresh', 'save'):
    mock.patch.object(objects.Instance, change, lambda *_, **__: None).start()
compute = driver.IronicDriver(None)
compute.init_host('compute-1')

# What the resource tracker asks.
assert compute.get_available_nodes(refresh=True) == [node.id]
assert compute.node_is_available(node.id) and not compute.is_node_deleted(node.id)
resources = compute.get_available_resource(node.id)
assert resources['resource_class'] == 'gold' and resources['hypervisor_hostname'] == node.id, resources
tree = provider_tree.ProviderTree()
tree.new_root(node.id, node.id)
compute.update_provider_tree(tree, node.id)
inventory = tree.data(node.id).inventory
assert inventory['CUSTOM_GOLD']['reserved'] == 0 and inventory['CUSTOM_GOLD']['total'] == 1, inventory
assert 'CUSTOM_GOLD' in tree.data(node.id).traits, tree.data(node.id).traits
assert compute.get_num_instances() == 0 and compute.list_instances() == []

# An instance.
flavor = objects.Flavor(id=1, name='gold', flavorid='gold', vcpus=0, memory_mb=0, root_gb=10, ephemeral_gb=0, swap=0,
                        rxtx_factor=1.0, vcpu_weight=0, disabled=False, is_public=True,
                        extra_specs={'resources:CUSTOM_GOLD': '1'})
instance = objects.Instance(
    context=admin, id=1, uuid='7e2b4a6c-6c6d-4a3e-9d5b-2f1f3d0a9b11', node=node.id, host='compute-1', flavor=flavor,
    image_ref='a1e0d9c4-3f0b-4f42-9a0e-0a0f5d0c7f21', config_drive='', user_id='u', project_id='p', hostname='web',
    display_name='web', display_description='', system_metadata={}, metadata={}, task_state=None, vm_state='building',
    power_state=0, root_device_name=None, default_ephemeral_device=None, default_swap_device=None, availability_zone='nova',
    trusted_certs=None, launched_at=None, terminated_at=None, launch_index=0, key_name=None, root_gb=10,
    ephemeral_gb=0, memory_mb=0, vcpus=0, reservation_id='r-1')
instance.obj_reset_changes()
image = objects.ImageMeta.from_dict({'id': instance.image_ref, 'disk_format': 'raw', 'container_format': 'bare',
                                     'properties': {}})
network = network_model.NetworkInfo()
assert not compute.instance_exists(instance)
compute.prepare_for_spawn(instance)
assert api.get_node(node.id).instance_id == instance.uuid
compute.spawn(admin, instance, image, None, None, {}, network_info=network)
here.append(instance)
assert api.get_node(node.id).provision_state == 'active'
assert compute.instance_exists(instance)
compute.get_available_nodes(refresh=True)
assert compute.list_instance_uuids() == [instance.uuid], compute.list_instance_uuids()
assert compute.get_num_instances() == 1

# Its power.
compute.power_on(admin, instance, network)
assert compute.get_info(instance, use_cache=False).state == power_state.RUNNING
compute.reboot(admin, instance, network, 'HARD')
compute.power_off(instance)
assert compute.get_info(instance, use_cache=False).state == power_state.SHUTDOWN
compute.reboot(admin, instance, network, 'SOFT')

# Its rescue, and the same again from a fresh image.
compute.rescue(admin, instance, network, image, 'hunter2', None, None)
assert api.get_node(node.id).provision_state == 'rescue'
compute.unrescue(admin, instance)
assert api.get_node(node.id).provision_state == 'active'

# Its end.
compute.destroy(admin, instance, network)
here.clear()
seen = api.wait_for_nodes_provision_state([node], 'available', timeout=60)[0]
assert seen.instance_id is None and 'image_source' not in seen.instance_info, seen.instance_info
assert not compute.instance_exists(instance)
assert compute.get_available_nodes(refresh=True) == [node.id]
print('nova ok')
