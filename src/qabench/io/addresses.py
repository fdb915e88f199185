"""Addresses: the origin of a URL, IP addresses of hosts, and which of them are public."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

from qabench.io.http_error import HttpError

# A host may have many addresses, and each try takes up to ``transport.CONNECT_SECONDS``.
MAX_ADDRESSES_TRIED = 3
# The prefix with which an IPv6 network represents IPv4 addresses (RFC 6052).
NAT64 = ipaddress.ip_network("64:ff9b::/96")
# The IPv6 range that is assigned for public use.
UNICAST = ipaddress.ip_network("2000::/3")
# Protocol assignments and 6to4 relays are not public, but ``is_global`` is True for them in some
# versions of Python.
NOT_PUBLIC = [ipaddress.ip_network("192.0.0.0/24"), ipaddress.ip_network("192.88.99.0/24")]


def origin(url: str) -> tuple[str, str | None, int | None]:
    """Return the scheme, host and port of a URL. An API key is sent only if all three are equal."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def addresses_of(host: str, port: int, *, private: bool = False) -> list[str]:
    """Return the IP addresses of a host, in the order in which to try them.

    Addresses that are not public are allowed only with ``private``, and link-local ones never.
    Raises HttpError for a host without an address, or with one that is not allowed.
    """
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise HttpError("connection failed", f"{host}: {error}", transient=True) from error
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
    # All of them are checked, because a proxy resolves the host itself and may use any of them.
    for address in addresses:
        if is_link_local(address) or not (private or is_public(address)):
            raise HttpError("blocked address", f"{host} has the address {address}")
    return addresses[:MAX_ADDRESSES_TRIED]


def is_public(text: str) -> bool:
    """Tell whether an IP address is public, that is, reachable over the internet."""
    address = _address(text)
    if not address.is_global or address.is_multicast:
        return False
    if address.version == 6:
        return address in UNICAST
    return not any(address in network for network in NOT_PUBLIC)


def is_this_machine(host: str | None) -> bool:
    """Tell whether the host of a URL is this machine: localhost, or a loopback address."""
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return host == "localhost"


def is_link_local(text: str) -> bool:
    """Tell whether an IP address belongs to the local link, such as 169.254.169.254."""
    return _address(text).is_link_local


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Parse an IP address. Return the IPv4 address that an IPv6 address contains, if any."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
