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

// Access specifies who may send requests. The zero value allows only programs and pages
// of this machine; listening on other addresses needs a token.
type Access struct {
	// Token is required in each request, as a bearer token; "" means that no token is required. If CookieName is set, a
	// browser may instead send it as ?token= once, and then in a cookie.
	Token               string
	CookieName          string   // name of the cookie that stores the token; empty means no cookie
	TokenHeader         string   // another header that may contain the token, because some clients send a key there; empty means none
	TokenCheckDelegated bool     // means that Guard does not check the token; the handler requires the token where it is needed
	OwnOriginOnly       bool     // refuses pages of all other origins that are not in Origins, even of other servers on this machine
	Origins             []string // further origins whose pages are allowed, each as scheme://host:port; the port may be *
}

// ErrNoToken is returned if an address that other machines can reach has no token.
var ErrNoToken = errors.New("addresses other than 127.0.0.1, localhost and [::1] require a token")

// CheckOriginsAndTokenForListenAddress returns an error if an origin is invalid, or if no Token is
// set although other machines can reach listenAddress.
func (a Access) CheckOriginsAndTokenForListenAddress(listenAddress string) error {
	var wrong []error
	for _, o := range a.Origins {
		if scheme, host, ok := strings.Cut(o, "://"); !ok || scheme != "http" && scheme != "https" || host == "" || strings.ContainsAny(host, "/?#@ ") {
			wrong = append(wrong, fmt.Errorf("invalid origin %q: expected a form such as http://localhost:3000 (the port may be *)", o))
		}
	}
	if a.Token == "" && !isLoopbackHostPort(listenAddress) {
		wrong = append(wrong, fmt.Errorf("other machines can reach %s: %w", listenAddress, ErrNoToken))
	}
	return errors.Join(wrong...)
}

// IsLoopback reports whether addr, in the form of Options.Addr, is reachable only from this machine; false if invalid.
func IsLoopback(addr string) bool {
	addr, err := withDefaultHostAndPort(addr)
	return err == nil && isLoopbackHostPort(addr)
}

func isLoopbackHostPort(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Guard passes a request to next if a allows it, regardless of the path. A request without the required token gets 401. A request gets
// 403 if its Host header does not name this machine (DNS rebinding), or if it comes from a page whose origin is not allowed. A request
// without an Origin header usually comes from a program and is allowed; with OwnOriginOnly, its Sec-Fetch-Site header is also checked.
func Guard(a Access, next http.Handler) http.Handler { return accessGuard{a, next, false} }

type accessGuard struct {
	Access
	next     http.Handler
	isPublic bool // other machines can reach the server under any name, so Host is not checked
}

func (g accessGuard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !g.isPublic && !isLocalHost(r.Host):
		Refuse(w, http.StatusForbidden, "forbidden", "the Host header must name this machine: use 127.0.0.1, localhost or [::1]")
	case !g.isPageAllowed(r):
		Refuse(w, http.StatusForbidden, "forbidden", "pages of this origin are not allowed to send requests")
	case !g.checkTokenAndSetCookie(w, r):
		w.Header().Set("WWW-Authenticate", "Bearer")
		Refuse(w, http.StatusUnauthorized, "unauthorized", "a token is required: send it in the header \"Authorization: Bearer TOKEN\"")
	default:
		g.next.ServeHTTP(w, r)
	}
}

// Refuse responds with a JSON object that contains a code and a message.
func Refuse(w http.ResponseWriter, status int, code, message string) {
	body, err := json.Marshal(map[string]string{"error": code, "message": message})
	if err != nil {
		panic(err) // strings can always be encoded
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client may have closed the connection
}

// isPageAllowed reports whether the page that sent a request is allowed to send it. Browsers omit Origin for simple
// links. With OwnOriginOnly, Sec-Fetch-Site then tells whether another site has sent the request.
func (g accessGuard) isPageAllowed(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	switch {
	case origin == "" && g.OwnOriginOnly:
		site := r.Header.Get("Sec-Fetch-Site")
		return site != "same-site" && site != "cross-site" || r.Header.Get("Sec-Fetch-Mode") == "navigate"
	case origin == "", HasNoForeignOrigin(r), slices.ContainsFunc(g.Origins, func(o string) bool { return matchesOrigin(o, origin) }):
		return true
	}
	scheme, host, _ := strings.Cut(origin, "://")
	return !g.OwnOriginOnly && (scheme == "http" || scheme == "https") && isLocalHost(host)
}

// HasNoForeignOrigin reports whether a request comes from a page of this server, or has no Origin because a program sent it.
func HasNoForeignOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	scheme, host, _ := strings.Cut(origin, "://")
	return (scheme == "http" || scheme == "https") && strings.EqualFold(host, r.Host)
}

func matchesOrigin(allowed, origin string) bool {
	if prefix, ok := strings.CutSuffix(allowed, ":*"); ok {
		port, ok := strings.CutPrefix(origin, prefix+":")
		_, err := strconv.ParseUint(port, 10, 16)
		return origin == prefix || ok && err == nil
	}
	return origin == allowed
}

// checkTokenAndSetCookie reports whether a request has the required token or needs none. OPTIONS requests need none, because browsers
// send preflight requests without a token. A valid token in the URL is also stored in a cookie.
func (g accessGuard) checkTokenAndSetCookie(w http.ResponseWriter, r *http.Request) (isAuthorized bool) {
	if g.Token == "" || g.TokenCheckDelegated || r.Method == http.MethodOptions {
		return true
	}
	right := func(s string) bool { return subtle.ConstantTimeCompare([]byte(s), []byte(g.Token)) == 1 }
	bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if ok && right(bearer) || g.TokenHeader != "" && right(r.Header.Get(g.TokenHeader)) {
		return true
	}
	if g.CookieName == "" {
		return false
	}
	if right(r.URL.Query().Get("token")) {
		http.SetCookie(w, &http.Cookie{Name: g.CookieName, Value: g.Token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		return true
	}
	c, err := r.Cookie(g.CookieName)
	return err == nil && right(c.Value)
}

func isLocalHost(host string) bool {
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
	return slices.Contains([]string{"localhost", "127.0.0.1", "[::1]"}, strings.ToLower(name))
}

// WriteNewTokenFile creates a new token and writes it to a file that only its owner can read. If the file name is empty, it
// creates nothing and returns "".
func WriteNewTokenFile(newID func() string, file string) (string, error) {
	if file == "" {
		return "", nil
	}
	token := strings.ReplaceAll(newID()+newID(), "-", "")
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("writing the token file: %w", err)
	}
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("writing the token file: %w", err)
	}
	return token, nil
}
