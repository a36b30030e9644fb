package web

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"syscall"
)

// guard decides which addresses are dialled.
type guard struct {
	allowed map[string]bool // host:port, in lower case: what a person named
	own     func() ([]net.Addr, error)

	resolver *net.Resolver              // nil: the system's
	passed   func(netip.AddrPort) error // nil; tests end here what would leave the machine
}

func newGuard(hosts []string) *guard {
	g := &guard{allowed: map[string]bool{}, own: net.InterfaceAddrs}
	for _, h := range hosts {
		h = strings.ToLower(h)
		if _, _, err := net.SplitHostPort(h); err == nil {
			g.allowed[h] = true
			continue
		}
		host := strings.Trim(h, "[]")
		g.allowed[net.JoinHostPort(host, "80")] = true
		g.allowed[net.JoinHostPort(host, "443")] = true
	}
	return g
}

// dial connects to an address as the URL gives it.
func (g *guard) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Resolver: g.resolver}
	if !g.allowed[strings.ToLower(addr)] {
		// Control is called with each address that a name resolved to, just
		// before it is connected to.
		d.Control = func(_, address string, _ syscall.RawConn) error { return g.check(address) }
	}
	return d.DialContext(ctx, network, addr)
}

// refused is an address that is not public.
func refused(why string) error {
	return failure(why + ": only public addresses are fetched; a person may name the host in tools.web.fetch.allowHosts")
}

func (g *guard) check(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return refused("its address can't be read")
	}
	if kind := withheld(at.Addr()); kind != "" {
		return refused("it is at a " + kind + " address")
	}
	// A service that listens on all of this machine's addresses, behind a
	// firewall that the machine itself doesn't pass, is no public one.
	own, err := g.own()
	if err != nil {
		return refused("this machine's own addresses can't be listed")
	}
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(at.Addr().Unmap().AsSlice()) {
			return refused("it is at an address of this machine")
		}
	}
	if g.passed != nil {
		return g.passed(at)
	}
	return nil
}

// Addresses that aren't public, by IANA's registries of special purposes. Of
// IPv6 only what is global unicast can be public at all.
var (
	special = [...]struct {
		kind   string
		prefix netip.Prefix
	}{
		{"local", netip.MustParsePrefix("0.0.0.0/8")},
		{"private", netip.MustParsePrefix("10.0.0.0/8")},
		{"shared (carrier's)", netip.MustParsePrefix("100.64.0.0/10")},
		{"loopback", netip.MustParsePrefix("127.0.0.0/8")},
		{"link-local", netip.MustParsePrefix("169.254.0.0/16")},
		{"private", netip.MustParsePrefix("172.16.0.0/12")},
		{"reserved", netip.MustParsePrefix("192.0.0.0/24")},
		{"documentation", netip.MustParsePrefix("192.0.2.0/24")},
		{"reserved", netip.MustParsePrefix("192.88.99.0/24")}, // 6to4 relays
		{"private", netip.MustParsePrefix("192.168.0.0/16")},
		{"reserved", netip.MustParsePrefix("198.18.0.0/15")}, // benchmarks
		{"documentation", netip.MustParsePrefix("198.51.100.0/24")},
		{"documentation", netip.MustParsePrefix("203.0.113.0/24")},
		{"multicast", netip.MustParsePrefix("224.0.0.0/4")},
		{"reserved", netip.MustParsePrefix("240.0.0.0/4")},
		{"loopback", netip.MustParsePrefix("::1/128")},
		{"unspecified", netip.MustParsePrefix("::/128")},
		{"private", netip.MustParsePrefix("fc00::/7")},
		{"link-local", netip.MustParsePrefix("fe80::/10")},
		{"private", netip.MustParsePrefix("fec0::/10")}, // site-local
		{"multicast", netip.MustParsePrefix("ff00::/8")},
		{"reserved", netip.MustParsePrefix("2001::/23")}, // Teredo among them
		{"documentation", netip.MustParsePrefix("2001:db8::/32")},
		{"reserved", netip.MustParsePrefix("2002::/16")}, // 6to4: holds an IPv4 address
		{"documentation", netip.MustParsePrefix("3fff::/20")},
	}
	global = netip.MustParsePrefix("2000::/3")
	nat64  = netip.MustParsePrefix("64:ff9b::/96") // of resolvers in networks without IPv4
)

// withheld says what kind of address a is, "" for a public one.
func withheld(a netip.Addr) string {
	a = a.WithZone("").Unmap()
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	for _, s := range special {
		if s.prefix.Contains(a) {
			return s.kind
		}
	}
	if !a.Is4() && (!global.Contains(a) || isatap(a)) {
		return "reserved"
	}
	return ""
}

// isatap reports whether the lower half of a names an IPv4 address to which a
// tunnel would lead.
func isatap(a netip.Addr) bool {
	b := a.As16()
	return b[8]&^0x03 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}
