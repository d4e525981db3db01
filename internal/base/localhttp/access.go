package localhttp

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Access says who may ask. The zero value lets programs and pages of this
// machine ask, and nobody else: there is no listening beyond it without a token.
type Access struct {
	// Token, unless empty, is demanded of every request: as bearer token or, when
	// Browser is set, as ?token=, which a browser then keeps in a cookie.
	Token string
	// Browser names that cookie; empty = there is none.
	Browser string
	// Header names one more header that may hold the token, for clients that send
	// a key of their own; empty = there is none.
	Header string
	// Delegated leaves it to the handler to demand the token, where it is needed.
	Delegated bool
	// Own refuses the pages of all other origins, those of other servers on this
	// machine too, but for Origins.
	Own bool
	// Origins are pages that may ask all the same, each as scheme://host:port;
	// the port may be *.
	Origins []string
}

// ErrNoToken is why nobody listens beyond this machine without a token.
var ErrNoToken = errors.New("a token is required beyond 127.0.0.1, localhost and [::1]")

// Check reports what is wrong with a, listening on addr as a whole.
func (a Access) Check(addr string) error {
	var wrong []error
	for _, o := range a.Origins {
		scheme, host, ok := strings.Cut(o, "://")
		if !ok || scheme != "http" && scheme != "https" || host == "" || strings.ContainsAny(host, "/?#@ ") {
			wrong = append(wrong, fmt.Errorf("origin %q: write it as http://localhost:3000; the port may be *", o))
		}
	}
	if a.Token == "" && !loopback(addr) {
		wrong = append(wrong, fmt.Errorf("other machines reach %s: %w", addr, ErrNoToken))
	}
	return errors.Join(wrong...)
}

// Loopback reports whether only this machine reaches an address of [Options].
func Loopback(addr string) bool {
	addr, err := localAddr(addr)
	return err == nil && loopback(addr)
}

// loopback reports whether only this machine reaches an address.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Guard lets through to next what a allows, on every path. It refuses with 403 a
// request whose Host is not this machine, and one of a page that may not ask: a
// page in a browser must reach the server neither by DNS rebinding nor from
// another origin. Without the token it refuses with 401. A request that no page
// sent has no Origin, which is fine.
func Guard(a Access, next http.Handler) http.Handler { return guard{Access: a, next: next} }

type guard struct {
	Access
	next http.Handler
	open bool // other machines reach the server, under any name: Host tells nothing
}

func (g guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !g.open && !localHost(r.Host):
		Refuse(w, http.StatusForbidden, "forbidden", "the host is not this machine")
	case !g.page(r):
		Refuse(w, http.StatusForbidden, "forbidden", "pages of this origin may not ask")
	case !g.known(w, r):
		w.Header().Set("WWW-Authenticate", "Bearer")
		Refuse(w, http.StatusUnauthorized, "unauthorized", "send the token as bearer token")
	default:
		g.next.ServeHTTP(w, r)
	}
}

// Refuse answers with a JSON object that has a code and a message.
func Refuse(w http.ResponseWriter, status int, code, message string) {
	body, err := json.Marshal(map[string]string{"error": code, "message": message})
	if err != nil {
		panic(err) // they are texts
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client may have gone away
}

// page reports whether the page that sent a request, if one did, may do so.
// Browsers leave out Origin where a page only links to something; then they say
// by Sec-Fetch-Site where from.
func (g guard) page(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	switch {
	case origin == "" && g.Own:
		site := r.Header.Get("Sec-Fetch-Site")
		return site != "same-site" && site != "cross-site" || r.Header.Get("Sec-Fetch-Mode") == "navigate"
	case origin == "" || OwnOrigin(r):
		return true
	case slices.ContainsFunc(g.Origins, func(o string) bool { return matches(o, origin) }):
		return true
	}
	return !g.Own && localOrigin(origin)
}

// OwnOrigin reports whether a request comes from the server's own pages, or from
// no page at all.
func OwnOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	scheme, host, _ := strings.Cut(origin, "://")
	return (scheme == "http" || scheme == "https") && strings.EqualFold(host, r.Host)
}

func matches(allowed, origin string) bool {
	if prefix, ok := strings.CutSuffix(allowed, ":*"); ok {
		port, ok := strings.CutPrefix(origin, prefix+":")
		_, err := strconv.ParseUint(port, 10, 16)
		return origin == prefix || ok && err == nil
	}
	return origin == allowed
}

// known reports whether a request has the token, if one is demanded. A browser
// that asks whether it may send a request has none yet.
func (g guard) known(w http.ResponseWriter, r *http.Request) bool {
	if g.Token == "" || g.Delegated || r.Method == http.MethodOptions {
		return true
	}
	right := func(s string) bool { return subtle.ConstantTimeCompare([]byte(s), []byte(g.Token)) == 1 }
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && right(bearer) {
		return true
	}
	if g.Header != "" && right(r.Header.Get(g.Header)) {
		return true
	}
	if g.Browser == "" {
		return false
	}
	if right(r.URL.Query().Get("token")) {
		http.SetCookie(w, &http.Cookie{Name: g.Browser, Value: g.Token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		return true
	}
	c, err := r.Cookie(g.Browser)
	return err == nil && right(c.Value)
}

func localOrigin(origin string) bool {
	for _, scheme := range []string{"http://", "https://"} {
		if host, ok := strings.CutPrefix(origin, scheme); ok {
			return localHost(host)
		}
	}
	return false
}

// localHost reports whether host, with or without a port, names this machine.
func localHost(host string) bool {
	name := host
	if h, port, err := net.SplitHostPort(host); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false
		}
		name = h
		if strings.HasPrefix(host, "[") {
			name = "[" + h + "]"
		}
	}
	switch strings.ToLower(name) {
	case "localhost", "127.0.0.1", "[::1]":
		return true
	}
	return false
}

// WriteToken makes a fresh token and writes it where only its owner reads it;
// empty = no file was named.
func WriteToken(newID func() string, file string) (string, error) {
	if file == "" {
		return "", nil
	}
	token := strings.ReplaceAll(newID()+newID(), "-", "")
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("writing the token: %w", err)
	}
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("writing the token: %w", err)
	}
	return token, nil
}
