"""Which network addresses pages may be fetched from: public ones, so that no page can reach into a private network."""

from __future__ import annotations

import ipaddress
import socket

NAT64 = ipaddress.ip_network("64:ff9b::/96")  # IPv4 addresses as IPv6 networks write them (RFC 6052)
IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


class Blocked(Exception):
    """A host has an address that pages are not fetched from; the message names it."""


class Unresolved(Exception):
    """A host name has no address."""


def addresses_of(host: str, port: int, *, private: bool = False) -> list[str]:
    """The IP addresses of a host, in the order in which to try them.

    The caller connects to an address, and not to the name: a name server could answer a second question otherwise.

    Args:
        host: a name or an IP address, without brackets.
        port: the port.
        private: whether addresses that are not public are allowed. Link-local ones never are: clouds serve credentials
            there.

    Raises:
        Blocked: one of the host's addresses is not public.
        Unresolved: the name has no address.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unresolved(f"{host}: {error}") from error
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not addresses:
        raise Unresolved(f"{host}: no address")
    for address in addresses:
        if is_link_local(address) or not (private or is_public(address)):
            raise Blocked(f"{host} has the address {address}")
    return addresses


def is_public(address: str) -> bool:
    """Whether an IP address is reachable from everywhere; an IPv4 address inside an IPv6 address counts as well."""
    return all(one.is_global and not one.is_multicast for one in _with_embedded(address))


def is_link_local(address: str) -> bool:
    """Whether an IP address belongs to the local link, such as 169.254.169.254."""
    return any(one.is_link_local for one in _with_embedded(address))


def _with_embedded(text: str) -> list[IPAddress]:
    """An address, and the IPv4 addresses inside it."""
    address = ipaddress.ip_address(text.partition("%")[0])
    found: list[IPAddress] = [address]
    if isinstance(address, ipaddress.IPv6Address):
        found += [one for one in (address.ipv4_mapped, address.sixtofour) if one is not None]
        found += address.teredo or ()
        if address in NAT64:
            found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return found
