"""Reserves, deploys, shows and releases a node through metalsmith's library.

usage: metalsmith.py ENDPOINT
"""
import os
import sys

import metalsmith
import openstack
from metalsmith import exceptions
from metalsmith import instance_config
from metalsmith import sources
from openstack import config

# What `anneal env` prints.
auth = {'endpoint': os.environ['OS_ENDPOINT']}
if os.environ['OS_AUTH_TYPE'] == 'http_basic':
    auth.update(username=os.environ['OS_USERNAME'], password=os.environ['OS_PASSWORD'])
region = config.OpenStackConfig(load_envvars=False, load_yaml_config=False).get_one(
    auth_type=os.environ['OS_AUTH_TYPE'], auth=auth, baremetal_endpoint_override=sys.argv[1])
api = openstack.connection.Connection(config=region).baremetal

node = api.create_node(driver='fake-hardware', name='smith', resource_class='compute',
                       properties={'local_gb': 20, 'cpus': 2}, provision_state='enroll')
for verb in ('manage', 'provide'):
    api.set_node_provision_state(node, verb, wait=True, timeout=60)
api.set_node_power_state(node, 'power off', wait=True, timeout=60)
provisioner = metalsmith.Provisioner(cloud_region=region)
try:
    provisioner.reserve_node('nosuch')
except exceptions.Error as error:
    assert 'nosuch' in str(error), error
else:
    raise AssertionError('there is no node of that class')

reserved = provisioner.reserve_node('compute', hostname='web-1')
assert reserved.id == node.id, reserved
allocation = api.get_allocation('web-1')
assert allocation.state == 'active' and allocation.node_id == node.id, allocation
image = sources.HttpWholeDiskImage('http://127.0.0.1/web.raw', checksum='0' * 32)
instance = provisioner.provision_node(reserved, image, config=instance_config.CloudInitConfig(ssh_keys=['ssh-ed25519 AAAA smith']), wait=60)
assert instance.state == metalsmith.InstanceState.ACTIVE, instance.state
assert instance.hostname == 'web-1' and instance.is_deployed, instance
assert [one.uuid for one in provisioner.list_instances()] == [instance.uuid]
assert provisioner.show_instance('web-1').uuid == instance.uuid
try:
    provisioner.reserve_node('compute')
except exceptions.Error:
    pass
else:
    raise AssertionError('the only node is taken')
released = provisioner.unprovision_node(instance.node, wait=60)
assert api.get_node('smith').provision_state == 'available', released
assert not list(api.allocations()) and not provisioner.list_instances()
print('metalsmith ok')
