package guard

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
)

// offlineNameServer is the name server of a network without external connections. It assigns an
// address to every name, so that a later connection to the address reveals the name.
type offlineNameServer struct {
	mu             sync.Mutex
	names          map[netip.Addr]string
	addrs          map[string]netip.Addr
	onlyKnownNames bool // names without an entry in addrs are not resolved
}

func newOfflineNameServer() *offlineNameServer {
	return &offlineNameServer{names: map[netip.Addr]string{}, addrs: map[string]netip.Addr{}}
}

func (r *offlineNameServer) nameOf(addr netip.Addr) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names[addr.Unmap()]
}

// getOrAssignAddr returns the address of a name, from 198.18.0.0/15, which is reserved for tests.
func (r *offlineNameServer) getOrAssignAddr(hostName string) netip.Addr {
	r.mu.Lock()
	defer r.mu.Unlock()
	addr, known := r.addrs[hostName]
	if !known {
		n := uint32(len(r.addrs)+1) % (1 << 17)
		addr = netip.AddrFrom4([4]byte{198, 18 + byte(n>>16), byte(n >> 8), byte(n)})
		r.addrs[hostName], r.names[addr] = addr, hostName
	}
	return addr
}

func (r *offlineNameServer) answerQueriesUntilClosed(conn net.PacketConn) {
	buf := make([]byte, 4096)
	for {
		n, from, err := conn.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		if answer := r.answerQuery(buf[:n]); answer != nil {
			_, _ = conn.WriteTo(answer, from) // the client may have disconnected
		}
	}
}

const (
	dnsHeaderBytes      = 12
	dnsTypeA            = 1
	dnsClassIN          = 1
	dnsSingleEntryCount = 1
)

// answerQuery returns the response to a DNS query, or nil if it does not have exactly one valid question. Only a
// question about an IPv4 address gets an address. If onlyKnownNames is set, an unknown name gets an empty answer.
func (r *offlineNameServer) answerQuery(query []byte) []byte {
	name, end, ok := parseQuestion(query)
	if !ok {
		return nil
	}
	out := append([]byte(nil), query[:end]...)
	out[2], out[3] = 0x80|query[2]&0x01, 0x80 // a response; "recursion desired" as in the query
	for _, count := range []int{6, 8, 10} {
		binary.BigEndian.PutUint16(out[count:], 0)
	}
	if kind, class := binary.BigEndian.Uint16(query[end-4:]), binary.BigEndian.Uint16(query[end-2:]); kind != dnsTypeA || class != dnsClassIN {
		return out
	}
	if r.onlyKnownNames && !r.addrs[name].IsValid() {
		return out
	}
	binary.BigEndian.PutUint16(out[6:], dnsSingleEntryCount)
	addr := r.getOrAssignAddr(name).As4()
	out = append(out, 0xc0, dnsHeaderBytes, 0, dnsTypeA, 0, dnsClassIN, 0, 0, 0, 60, 0, 4) // the name refers to the question, and the answer is valid for a minute
	return append(out, addr[:]...)
}

func parseQuestion(query []byte) (name string, end int, ok bool) {
	if len(query) < dnsHeaderBytes || query[2]&0x80 != 0 || binary.BigEndian.Uint16(query[4:]) != dnsSingleEntryCount {
		return "", 0, false
	}
	var labels []string
	at := dnsHeaderBytes
	for {
		if at >= len(query) {
			return "", 0, false
		}
		n := int(query[at])
		at++
		if n == 0 {
			break
		}
		if n > 63 || at+n > len(query) {
			return "", 0, false
		}
		labels = append(labels, string(query[at:at+n]))
		at += n
	}
	if at+4 > len(query) || len(labels) == 0 {
		return "", 0, false
	}
	return strings.ToLower(strings.Join(labels, ".")), at + 4, true
}
