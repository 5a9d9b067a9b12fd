/*
Copyright 2026 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package podpicker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Range is a set of addresses with some or all of their ports.
type Range struct {
	Prefix netip.Prefix
	// FirstPort and LastPort are the ports, both included. Zero means all.
	FirstPort, LastPort uint16
}

// ParseRange parses a CIDR, optionally with a port or ports: 10.0.0.0/8, 127.0.0.1/32:30000-30010 or
// fd00::/64:8080.
func ParseRange(text string) (Range, error) {
	address, rest, found := strings.Cut(text, "/")
	if !found {
		return Range{}, fmt.Errorf("%q is no CIDR: write it like 10.0.0.0/8, or 127.0.0.1/32:30000-30010 with ports", text)
	}
	bits, ports, hasPorts := strings.Cut(rest, ":")
	prefix, err := netip.ParsePrefix(address + "/" + bits)
	if err != nil {
		return Range{}, fmt.Errorf("%q is no CIDR: %w", text, err)
	}
	if prefix != prefix.Masked() {
		return Range{}, fmt.Errorf("%q has bits after its prefix: write %s", text, prefix.Masked())
	}
	if prefix.Addr().Is4In6() {
		return Range{}, fmt.Errorf("%q is an IPv4 address in the form of IPv6: write it in the form of IPv4", text)
	}
	r := Range{Prefix: prefix}
	if !hasPorts {
		return r, nil
	}
	first, last, isRange := strings.Cut(ports, "-")
	if !isRange {
		last = first
	}
	for _, port := range []struct {
		text string
		to   *uint16
	}{{first, &r.FirstPort}, {last, &r.LastPort}} {
		number, err := strconv.ParseUint(port.text, 10, 16)
		if err != nil || number == 0 {
			return Range{}, fmt.Errorf("%q has the port %q: it must be 1 to 65535", text, port.text)
		}
		*port.to = uint16(number)
	}
	if r.FirstPort > r.LastPort {
		return Range{}, fmt.Errorf("%q has ports that end before they begin", text)
	}
	return r, nil
}

// ParseRanges parses the values of a flag.
func ParseRanges(texts []string) ([]Range, error) {
	var ranges []Range
	var errs []error
	for _, text := range texts {
		r, err := ParseRange(text)
		errs = append(errs, err)
		ranges = append(ranges, r)
	}
	return ranges, errors.Join(errs...)
}

func (r Range) contains(target netip.AddrPort) bool {
	return r.Prefix.Contains(target.Addr()) && r.hasPort(target.Port())
}

func (r Range) hasPort(port uint16) bool {
	return r.FirstPort == 0 || r.FirstPort <= port && port <= r.LastPort
}

func (r Range) isOnePort() bool { return r.FirstPort != 0 && r.FirstPort == r.LastPort }

// within reports whether all addresses of the range are in the prefix.
func (r Range) within(prefix netip.Prefix) bool {
	return prefix.Bits() <= r.Prefix.Bits() && prefix.Contains(r.Prefix.Addr())
}

// special are addresses with a meaning of their own.
type special struct {
	prefix netip.Prefix
	what   string
	// listed allows them if Allowed has a range of nothing else.
	listed bool
}

// specials are in the order in which they are looked up. An address of a metadata service is never
// allowed: whoever reaches it there gets the credentials of the machine.
var specials = []special{
	{netip.MustParsePrefix("169.254.169.254/32"), "of a cloud metadata service", false},
	{netip.MustParsePrefix("169.254.170.2/32"), "of a cloud metadata service", false},
	{netip.MustParsePrefix("169.254.170.23/32"), "of a cloud metadata service", false},
	{netip.MustParsePrefix("100.100.100.200/32"), "of a cloud metadata service", false},
	{netip.MustParsePrefix("168.63.129.16/32"), "of a cloud metadata service", false},
	{netip.MustParsePrefix("192.0.0.192/32"), "of a cloud metadata service", false},
	{netip.MustParsePrefix("fd00:ec2::/32"), "of a cloud metadata service", false},
	{netip.MustParsePrefix("fd20:ce::254/128"), "of a cloud metadata service", false},
	{netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"), "of a cloud metadata service", false},
	{netip.MustParsePrefix("fd00:a9fe:a9fe::1/128"), "of a cloud metadata service", false},
	{netip.MustParsePrefix("fd00:42::42/128"), "of a cloud metadata service", false},
	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified", false},
	{netip.MustParsePrefix("::/128"), "unspecified", false},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast", false},
	{netip.MustParsePrefix("ff00::/8"), "multicast", false},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved or broadcast", false},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback", true},
	{netip.MustParsePrefix("::1/128"), "loopback", true},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local", true},
	{netip.MustParsePrefix("fe80::/10"), "link-local", true},
}

// tunnels are IPv6 addresses that contain an IPv4 address, to which a gateway may deliver.
var tunnels = []struct {
	prefix netip.Prefix
	// at is where the bytes of the IPv4 address are, and inverted whether its bits are.
	at       [4]int
	inverted bool
}{
	{netip.MustParsePrefix("::ffff:0:0/96"), atEnd, false},   // IPv4-mapped
	{netip.MustParsePrefix("::ffff:0:0:0/96"), atEnd, false}, // IPv4-translated
	{netip.MustParsePrefix("64:ff9b::/96"), atEnd, false},    // NAT64
	// Local NAT64, with a prefix of 96, 48, 56 or 64 bits (RFC 6052). The other bytes may be anything.
	{netip.MustParsePrefix("64:ff9b:1::/48"), atEnd, false},
	{netip.MustParsePrefix("64:ff9b:1::/48"), [4]int{6, 7, 9, 10}, false},
	{netip.MustParsePrefix("64:ff9b:1::/48"), [4]int{7, 9, 10, 11}, false},
	{netip.MustParsePrefix("64:ff9b:1::/48"), [4]int{9, 10, 11, 12}, false},
	{netip.MustParsePrefix("2002::/16"), [4]int{2, 3, 4, 5}, false}, // 6to4
	{netip.MustParsePrefix("2001::/32"), atEnd, true},               // Teredo
	{netip.MustParsePrefix("::/96"), atEnd, false},                  // IPv4-compatible
}

var atEnd = [4]int{12, 13, 14, 15}

// controlPlanePorts are those of the components of Kubernetes. They are only allowed if Allowed has
// exactly this port.
var controlPlanePorts = []uint16{2379, 2380, 2381, 4001, 6443, 10248, 10249, 10250, 10255, 10256, 10257, 10258, 10259, 10260}

// Where an administrator lists Allowed and Denied.
const (
	allowedFlag = "--downscale-pod-picker-allowed-cidrs"
	deniedFlag  = "--downscale-pod-picker-denied-cidrs"
)

// Addresses decides which addresses may be called, besides those of pods behind a Service. The zero
// value allows none.
type Addresses struct {
	// Allowed are those that an administrator lists. Loopback and link-local addresses, those of the
	// API server, and ports of the control plane need a range of nothing else.
	Allowed []Range
	// Denied are never allowed.
	Denied []Range
	// APIServers are the addresses of the API server. While it returns nil, they are not known, and only
	// loopback and link-local addresses may be called.
	APIServers func() []netip.Addr
	// Dial connects to an address that was checked. Nil is that of net.Dialer, which all but tests use.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// errNotKnown is that of every address that might be the API server's, until its addresses are known.
var errNotKnown = errors.New("the addresses of the API server, which may not be called, are not known yet")

// check returns an error that says why the address may not be called. isPod is whether it is known to
// be that of a pod in the network of pods, behind a Service that may be called.
func (a *Addresses) check(target netip.AddrPort, isPod bool) error {
	if !target.Addr().IsValid() {
		return fmt.Errorf("%s is no address", target)
	}
	if zone := target.Addr().Zone(); zone != "" {
		return fmt.Errorf("address %s has a zone, which means something on one machine only", target.Addr())
	}
	for _, spelling := range spellings(target.Addr()) {
		if err := a.checkSpelling(netip.AddrPortFrom(spelling, target.Port()), isPod && spelling == target.Addr().Unmap()); err != nil {
			return err
		}
	}
	return nil
}

// spellings returns the address itself, IPv4 if it is mapped, and the IPv4 addresses in it.
func spellings(address netip.Addr) []netip.Addr {
	unmapped := address.Unmap()
	all := []netip.Addr{unmapped}
	if unmapped.Is4() || unmapped == netip.IPv6Loopback() || unmapped == netip.IPv6Unspecified() {
		return all
	}
	bytes := unmapped.As16()
	for _, tunnel := range tunnels {
		if !tunnel.prefix.Contains(unmapped) {
			continue
		}
		var inner [4]byte
		for i, at := range tunnel.at {
			inner[i] = bytes[at]
			if tunnel.inverted {
				inner[i] = ^inner[i]
			}
		}
		if inner[0] == 0 && tunnel.at != atEnd && tunnel.prefix.Bits() == 48 {
			continue // The prefix has another length.
		}
		all = append(all, netip.AddrFrom4(inner))
	}
	return all
}

func (a *Addresses) checkSpelling(target netip.AddrPort, isPod bool) error {
	address := target.Addr()
	if matchesAny(a.Denied, target) {
		return fmt.Errorf("address %s is denied by %s", target, deniedFlag)
	}
	for _, s := range specials {
		if !s.prefix.Contains(address) {
			continue
		}
		if s.listed && slices.ContainsFunc(a.Allowed, func(r Range) bool { return r.within(s.prefix) && r.contains(target) }) {
			return a.checkPort(target)
		}
		if s.listed {
			return fmt.Errorf("address %s is %s, which only a range within %s in %s allows", target, s.what, s.prefix, allowedFlag)
		}
		return fmt.Errorf("address %s is %s, which is never allowed", address, s.what)
	}
	var servers []netip.Addr
	if a.APIServers != nil {
		if servers = a.APIServers(); servers == nil {
			return errNotKnown
		}
	}
	if slices.Contains(servers, address) &&
		!slices.ContainsFunc(a.Allowed, func(r Range) bool { return r.Prefix.IsSingleIP() && r.contains(target) }) {
		return fmt.Errorf("address %s is one of the API server, which only a range of this one address in %s allows", address, allowedFlag)
	}
	if !isPod && !matchesAny(a.Allowed, target) {
		return fmt.Errorf("address %s is not allowed by %s, and is not that of a pod behind a Service NAME.NAMESPACE.svc", target, allowedFlag)
	}
	return a.checkPort(target)
}

func (a *Addresses) checkPort(target netip.AddrPort) error {
	if target.Port() == 0 {
		return errors.New("port 0 is none")
	}
	if slices.Contains(controlPlanePorts, target.Port()) &&
		!slices.ContainsFunc(a.Allowed, func(r Range) bool { return r.isOnePort() && r.contains(target) }) {
		return fmt.Errorf("port %d is one of the control plane or of kubelets, which only a range with exactly this port in %s allows", target.Port(), allowedFlag)
	}
	return nil
}

func matchesAny(ranges []Range, target netip.AddrPort) bool {
	return slices.ContainsFunc(ranges, func(r Range) bool { return r.contains(target) })
}
