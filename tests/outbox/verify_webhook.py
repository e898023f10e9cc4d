"""The lines for Python of docs/learn/receiving-webhooks.md, run by webhook_receiver_test.cpp.

SECRET ID TIMESTAMP SIGNATURES BODY: succeeds when the body is signed, and a changed one is not.
"""

import sys

# [verify]
import base64, hashlib, hmac

def is_signed(secret, webhook_id, timestamp, signatures, body):
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{webhook_id}.{timestamp}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(expected, one) for one in signatures.split(" "))
# [verify]

headers, body = sys.argv[1:5], sys.argv[5].encode()
sys.exit(0 if is_signed(*headers, body) and not is_signed(*headers, body + b" ") else 1)
