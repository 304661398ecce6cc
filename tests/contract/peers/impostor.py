"""Listens where an agent was: impostor.py PORT DIR. Has a certificate of its own, and says of every command that it
succeeded. Notes each connection in DIR/connections and each request in DIR/requests."""
import http.server
import ssl
import subprocess
import sys

port, home = int(sys.argv[1]), sys.argv[2]
key, certificate = f'{home}/key.pem', f'{home}/certificate.pem'
subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-384', '-nodes', '-days', '1',
                '-subj', '/CN=caged', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', certificate],
               check=True)


def note(file, line):
    with open(f'{home}/{file}', 'a') as log:
        log.write(f'{line}\n')


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        note('requests', self.requestline)
        body = b'{"commands": [{"id": "1", "command_name": "execute_clean_step", "command_status": "SUCCEEDED"}]}'
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET


class Server(http.server.HTTPServer):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def get_request(self):
        connection, address = super().get_request()
        note('connections', address)
        return self.context.wrap_socket(connection, server_side=True), address


Server(('127.0.0.1', port), Handler).serve_forever()
