package web

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// Every form of an address that is not public is refused, by the address that
// would be dialled.
func TestAddresses(t *testing.T) {
	for address, public := range map[string]bool{
		"93.184.215.14": true, "1.1.1.1": true, "9.255.255.255": true, "11.0.0.0": true, "100.63.255.255": true, "100.128.0.0": true,
		"172.15.255.255": true, "172.32.0.0": true, "192.167.255.255": true, "223.255.255.255": true,
		"2606:4700::1111": true, "2a00:1450:4001::1": true, "::ffff:93.184.215.14": true, "64:ff9b::5db8:d70e": true,

		"0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "10.255.255.255": false, "100.64.0.1": false, "100.127.255.255": false,
		"127.0.0.1": false, "127.255.255.254": false, "169.254.169.254": false, "172.16.0.1": false, "172.31.255.255": false,
		"192.0.0.8": false, "192.0.2.1": false, "192.88.99.1": false, "192.168.0.1": false, "198.18.0.1": false, "198.19.255.255": false,
		"198.51.100.7": false, "203.0.113.7": false, "224.0.0.1": false, "239.255.255.255": false, "240.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "::7f00:1": false, "::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:0:127.0.0.1": false,
		"64:ff9b::7f00:1": false, "64:ff9b::a00:1": false, "64:ff9b::a9fe:a9fe": false, "64:ff9b:1::1": false, "100::1": false,
		"2001::1": false, "2001:db8::1": false, "2002:7f00:1::": false, "2002:5db8:d70e::1": false, "3fff::1": false,
		"5f00::1": false, "fc00::1": false, "fd12:3456::1": false, "fe80::1": false, "fe80::1%eth0": false, "febf::1": false, "fec0::1": false,
		"ff02::1": false, "2606:4700::5efe:7f00:1": false, "2606:4700::200:5efe:a00:1": false, "4000::1": false,
	} {
		kind := withheld(netip.MustParseAddr(address))
		if (kind == "") != public {
			t.Errorf("%s is said to be %q, public is %v", address, kind, public)
		}
	}
}

// What the standard library knows to be no public address never passes, in
// whatever form it comes.
func FuzzAddresses(f *testing.F) {
	for _, s := range []string{"127.0.0.1", "::1", "10.1.2.3", "::ffff:192.168.1.1", "fe80::1%1", "64:ff9b::a00:1", "2606:4700::1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return
		}
		private := func(a netip.Addr) bool {
			return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() || a.IsInterfaceLocalMulticast()
		}
		forms := []netip.Addr{a, a.WithZone(""), a.WithZone("").Unmap()}
		if v4 := a.WithZone("").Unmap(); v4.Is4() {
			b := v4.As4()
			forms = append(forms, netip.AddrFrom16([16]byte{10: 0xff, 11: 0xff, 12: b[0], 13: b[1], 14: b[2], 15: b[3]}),
				netip.AddrFrom16([16]byte{1: 0x64, 2: 0xff, 3: 0x9b, 12: b[0], 13: b[1], 14: b[2], 15: b[3]}))
		}
		kind := withheld(a)
		if private(a.WithZone("").Unmap()) && kind == "" {
			t.Errorf("%s passes", a)
		}
		for _, form := range forms {
			if (withheld(form) == "") != (kind == "") {
				t.Errorf("%s is %q, its form %s is %q", a, kind, form, withheld(form))
			}
		}
	})
}

func TestOwnAddresses(t *testing.T) {
	g := newGuard(nil)
	var fail error
	g.own = func() ([]net.Addr, error) {
		return []net.Addr{&net.IPNet{IP: net.ParseIP("93.184.215.14"), Mask: net.CIDRMask(24, 32)}}, fail
	}
	for address, ok := range map[string]bool{"93.184.215.14:80": false, "[::ffff:93.184.215.14]:80": false, "93.184.215.15:80": true, "nonsense": false} {
		err := g.check(address)
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "only public addresses") {
			t.Errorf("%s: %v", address, err)
		}
	}
	fail = errors.New("broken")
	if err := g.check("93.184.215.15:80"); err == nil || !strings.Contains(err.Error(), "only public addresses") {
		t.Errorf("without knowing this machine's addresses: %v", err)
	}
}

func TestAllowedHosts(t *testing.T) {
	g := newGuard([]string{"Wiki.example", "127.0.0.1:8080", "[::1]", "[::1]:9000"})
	for addr, want := range map[string]bool{
		"wiki.example:80": true, "wiki.example:443": true, "wiki.example:8080": false, "a.wiki.example:80": false,
		"127.0.0.1:8080": true, "127.0.0.1:80": false, "[::1]:443": true, "[::1]:9000": true, "[::1]:9001": false,
	} {
		if g.allowed[strings.ToLower(addr)] != want {
			t.Errorf("%s: allowed is %v", addr, !want)
		}
	}
}
