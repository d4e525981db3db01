// Package oauthtest has the HTTP client with which the tests of OAuth servers send requests and read the responses.
package oauthtest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// Client is a client of a server. It does not follow redirects.
type Client struct {
	T    *testing.T
	URL  string // the base URL of the server
	HTTP *http.Client
}

// NewClient returns a client of a server.
func NewClient(t *testing.T, server *httptest.Server) Client {
	t.Helper()
	client := server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return Client{T: t, URL: server.URL, HTTP: client}
}

// Reply is a response whose body was read.
type Reply struct {
	Status int
	Header http.Header
	Body   string
}

// JSON decodes the body.
func (r Reply) JSON(t *testing.T) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(r.Body), &m); err != nil {
		t.Fatalf("%d %s: %v", r.Status, r.Body, err)
	}
	return m
}

// Do sends a request; headers are pairs.
func (c *Client) Do(method, path, body string, headers ...string) Reply {
	c.T.Helper()
	req, err := http.NewRequestWithContext(c.T.Context(), method, c.URL+path, strings.NewReader(body))
	if err != nil {
		c.T.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		c.T.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		c.T.Fatal(err)
	}
	return Reply{resp.StatusCode, resp.Header, string(raw)}
}

// Form posts a form.
func (c *Client) Form(path string, f url.Values, headers ...string) Reply {
	c.T.Helper()
	return c.Do(http.MethodPost, path, f.Encode(), append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
}

// Control sends a request to a route of the fixture server that only tests use.
func (c *Client) Control(route string, f url.Values) Reply {
	c.T.Helper()
	return c.Form("/_claudeless/oauth/"+route, f)
}

// Call posts a request for a tool to /mcp with a token; "" means without one. headers are pairs.
func (c *Client) Call(token, body string, headers ...string) Reply {
	c.T.Helper()
	headers = append([]string{"Content-Type", "application/json"}, headers...)
	if token != "" {
		headers = append(headers, "Authorization", "Bearer "+token)
	}
	return c.Do(http.MethodPost, "/mcp", body, headers...)
}

// WantStatus fails the test if a call of a tool did not get this status. It returns the reply.
func (c *Client) WantStatus(tool string, r Reply, status int) Reply {
	c.T.Helper()
	if r.Status != status {
		c.T.Errorf("%s: status %d, want %d: %s", tool, r.Status, status, r.Body)
	}
	return r
}
