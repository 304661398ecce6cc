"""Asks a bare metal API through openstacksdk: a node's life, its ports, traits and templates, what is refused.

usage: sdk.py ENDPOINT
"""
import os
import sys
import time
import types

import openstack
from openstack import exceptions
from openstack import utils

MAC = '52:54:00:c0:47:22'
STEP = {'interface': 'bios', 'step': 'factory_reset', 'args': {}, 'priority': 50}

# The library looks every two seconds.
utils.time = types.SimpleNamespace(time=time.time, monotonic=time.monotonic,
                                   sleep=lambda seconds: time.sleep(min(seconds, 0.1)))
# What `anneal env` prints.
auth = {'endpoint': os.environ['OS_ENDPOINT']}
if os.environ['OS_AUTH_TYPE'] == 'http_basic':
    auth.update(username=os.environ['OS_USERNAME'], password=os.environ['OS_PASSWORD'])
cloud = openstack.connect(load_envvars=False, auth_type=os.environ['OS_AUTH_TYPE'], auth=auth,
                          baremetal_endpoint_override=sys.argv[1])
api = cloud.baremetal


def refused(kind, what, *args, **kwargs):
    """`what` must be refused with this exception; its text. A 409 is not tried again and again."""
    tries, api.status_code_retries = api.status_code_retries, 0
    try:
        what(*args, **kwargs)
    except kind as error:
        return str(error)
    finally:
        api.status_code_retries = tries
    raise AssertionError(f'{what} {args} {kwargs} was not refused')


def rests(node, state):
    """The node in `state` with nothing wrong."""
    seen = api.get_node(node.id)
    assert seen.provision_state == state, f'{seen.provision_state}, not {state}'
    assert seen.last_error is None and not seen.is_maintenance, seen.last_error
    return seen


def provision(node, target, state, **more):
    """Asks for a target and waits for the state."""
    api.set_node_provision_state(node, target, wait=True, timeout=30, **more)
    return rests(node, state)


assert 'fake-hardware' in {driver.name for driver in api.drivers()}
assert 'power_interface' in api.get_driver('fake-hardware').to_dict() or api.get_driver('fake-hardware').hosts

# A node and its port, and what cannot be.
node = api.create_node(driver='fake-hardware', name='sdk', properties={'cpus': 2}, resource_class='small',
                       driver_info={'password': 'hunter2'}, provision_state='enroll')
assert node.provision_state == 'enroll' and node.name == 'sdk', node
assert node.driver_info['password'] == '******', node.driver_info
said = refused(exceptions.BadRequestException, api.create_node, driver='nosuch')
assert 'nosuch' in said, said
refused(exceptions.ConflictException, api.create_node, driver='fake-hardware', name='sdk')
refused(exceptions.NotFoundException, api.get_node, 'nosuch')
assert api.find_node('nosuch') is None
port = api.create_port(node_uuid=node.id, address=MAC)
assert port.address == MAC and port.node_id == node.id and port.is_pxe_enabled, port
refused(exceptions.ConflictException, api.create_port, node_uuid=node.id, address=MAC)
port = api.update_port(port, extra={'slot': 3})
assert api.get_port(port.id).extra == {'slot': 3}
assert [one.id for one in api.ports(address=MAC, details=True)] == [port.id]
assert [one.id for one in api.ports(node=node.id)] == [port.id]

# Lists: filters, details, chosen fields, pages.
others = [api.create_node(driver='fake-hardware', name=f'other-{number}') for number in range(3)]
assert {one.name for one in api.nodes()} == {'sdk', 'other-0', 'other-1', 'other-2'}
assert [one.name for one in api.nodes(resource_class='small', details=True)] == ['sdk']
assert [one.name for one in api.nodes(limit=1)] and len(list(api.nodes(limit=1))) == 4, 'pages are followed'
named = next(api.nodes(fields=['name', 'uuid'], sort_key='name', sort_dir='desc'))
assert named.name == 'sdk' and named.driver is None, named
for other in others:
    api.delete_node(other)
    api.wait_for_node_reservation(node)
assert len(list(api.nodes())) == 1

# Changes.
node = api.patch_node(node, [{'op': 'add', 'path': '/extra/rack', 'value': 'r7'},
                             {'op': 'replace', 'path': '/properties/cpus', 'value': 4}])
assert node.extra == {'rack': 'r7'} and node.properties == {'cpus': 4}, node
node = api.update_node(node, description='a node of the SDK', extra={'rack': 'r8'})
assert api.get_node('sdk').extra == {'rack': 'r8'} and node.description == 'a node of the SDK'
refused(exceptions.BadRequestException, api.patch_node, node, [{'op': 'add', 'path': '/provision_state', 'value': 'x'}])
api.set_node_traits(node, ['HW_CPU_X86_VMX', 'CUSTOM_SDK'])
api.remove_node_trait(node, 'HW_CPU_X86_VMX')
assert api.get_node(node.id).traits == ['CUSTOM_SDK']
api.set_node_maintenance(node, reason='a look inside')
assert api.get_node(node.id).maintenance_reason == 'a look inside'
api.unset_node_maintenance(node)

# States.
refused(exceptions.SDKException, api.set_node_provision_state, node, 'provide')
provision(node, 'manage', 'manageable')
assert api.validate_node(node)['power'].result is True
api.set_node_power_state(node, 'power on', wait=True, timeout=30)
assert api.get_node(node.id).power_state == 'power on'
api.set_node_boot_device(node, 'pxe', persistent=False)
assert api.get_node_boot_device(node)['boot_device'] == 'pxe'
assert 'disk' in api.get_node_supported_boot_devices(node)['supported_boot_devices']
provision(node, 'inspect', 'manageable')
assert api.get_node_inventory(node)['inventory']['cpu']['count'] == 4
provision(node, 'clean', 'manageable', clean_steps=[{'interface': 'bios', 'step': 'factory_reset'}])
said = refused(exceptions.BadRequestException, api.set_node_provision_state, node, 'clean',
               clean_steps=[{'interface': 'nosuch', 'step': 'x'}])
assert 'nosuch' in said, said
provision(node, 'provide', 'available')
api.wait_for_nodes_provision_state([node], 'available', timeout=10)

# A deployment: what the fake cannot do fails by name; without it, it succeeds.
refused(exceptions.BadRequestException, api.set_node_provision_state, node, 'active', deploy_steps=[{'step': 'x'}])
wrong = [{'interface': 'deploy', 'step': 'nosuch', 'args': {}, 'priority': 10}]
api.set_node_provision_state(node, 'active', deploy_steps=wrong)
said = refused(exceptions.ResourceFailure, api.wait_for_nodes_provision_state, [node], 'active', timeout=30)
assert 'nosuch' in said, said
api.set_node_provision_state(node, 'deleted', wait=True, timeout=30)
template = api.create_deploy_template(name='CUSTOM_SDK', steps=[STEP])
assert [one.id for one in api.deploy_templates()] == [template.id]
api.update_node(node, instance_info={'image_source': 'http://127.0.0.1/none'})
provision(node, 'active', 'active', config_drive={'meta_data': {'uuid': node.id}, 'user_data': '#cloud-config\n'})
refused(exceptions.ConflictException, api.delete_node, node)
provision(node, 'deleted', 'available')
api.delete_deploy_template(template)

# The end.
provision(node, 'manage', 'manageable')
api.delete_port(port)
assert not list(api.ports())
api.delete_node(node)
assert not list(api.nodes()) and api.find_node('sdk') is None
print('openstacksdk', openstack.version.__version__ if hasattr(openstack, 'version') else '', 'ok')
