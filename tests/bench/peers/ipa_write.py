"""Writes one image with ironic-python-agent's own code: its standby extension, entered behind the choice of the disk.

Arguments: image_info as JSON, the device. Prints the seconds that it took and the bytes of its scratch file. Importing
its modules is not in the time.
"""
import json
import os
import sys
import tempfile
import time

from ironic_python_agent import config  # noqa: F401  registers the options
from ironic_python_agent.extensions import standby
from oslo_config import cfg

image_info, device = json.loads(sys.argv[1]), sys.argv[2]
cfg.CONF([], project='ironic-python-agent')
# A failure is to be seen at once.
cfg.CONF.set_override('image_download_connection_retries', 0)
extension = standby.StandbyExtension()
extension.partition_uuids = {}
begun = time.monotonic()
# As prepare_image has it.
if image_info['disk_format'] == 'raw':
    extension._stream_raw_image_onto_device(image_info, device)
else:
    extension._cache_and_write_image(image_info, device)
seconds = time.monotonic() - begun
scratch = os.path.join(tempfile.gettempdir(), image_info['id'])
print(json.dumps({'seconds': seconds, 'scratch': os.path.getsize(scratch) if os.path.exists(scratch) else 0}))
