package journal

import (
	"cmp"
	"strings"
)

// OAuth is a request to the authorization server of a fixture, or a request that the fixture refused because a token
// or a scope was missing. It does not contain the values of tokens.
type OAuth struct {
	// Request is the kind of request: a client registration, an authorization, a token, or access to the server.
	Request string `json:"request" enum:"register,authorize,token,access"`
	// Grant is the grant type of a token request.
	Grant string `json:"grant,omitempty"`
	// Client is the id of the client; absent if unknown.
	Client string `json:"client,omitempty"`
	// Requested are the scopes that the request named.
	Requested []string `json:"requested,omitempty"`
	// Granted are the scopes of the token that was issued or presented.
	Granted []string `json:"granted,omitempty"`
	// Result is `ok` or the error code.
	Result string `json:"result"`
	// AccessDigest identifies the access token that was issued or presented.
	AccessDigest string `json:"access_digest,omitempty"`
	// RefreshDigest identifies the refresh token that was issued or refused.
	RefreshDigest string `json:"refresh_digest,omitempty"`
}

func (OAuth) kind() string { return "oauth" }

func (o OAuth) describe() string {
	what := cmp.Or(o.Grant, o.Request)
	if len(o.Granted) > 0 {
		what += " " + strings.Join(o.Granted, " ")
	}
	return what + " -> " + o.Result
}
