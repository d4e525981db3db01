package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// A server that refused a request without a token is not contacted again before a login. If the metadata of its
// authorization server is unknown, it is contacted again after refusalLifetime (observed with 2.1.330).
const (
	refusalsFile    = "mcp-needs-auth-cache.json"
	refusalLifetime = 15 * time.Minute
)

// defaultRedirectURI is the redirect URI of a client that is registered before a login (observed with 2.1.330).
const defaultRedirectURI = "http://localhost:3118/callback"

type refusalEntry struct {
	Timestamp int64 `json:"timestamp"` // ms
}

// WasRefused reports that the server refused a request without a token, and that no login has followed.
func (c *Client) WasRefused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loadCredentials() != nil || c.credentials.AccessToken != "" || c.credentials.RefreshToken != "" {
		return false
	}
	if d := c.credentials.Discovery; d != nil && d.MetadataFound && d.RefusedAt > 0 {
		return true
	}
	var last refusalEntry
	raw := c.options.Store.refusals().Get(c.options.Server.Name)
	return json.Unmarshal(raw, &last) == nil && c.options.Clock.Now().Sub(time.UnixMilli(last.Timestamp)) < refusalLifetime
}

// recordRefusal stores that the server refused a request without a token, and returns [ErrNeedsLogin]. If no client is
// known, and the authorization server has no metadata or registers none, it first tries to register one, as the real
// CLI does. If the registration fails, recordRefusal returns its error and stores nothing. The caller must have locked
// the store.
func (c *Client) recordRefusal(ctx context.Context, f *discovery) error {
	f.state.RefusedAt = c.options.Clock.Now().UnixMilli()
	if (!f.state.MetadataFound || f.metadata.Registration == "" && !f.metadata.ClientDocument) && c.options.Config.ClientID == "" && c.credentials.ClientID == "" {
		id, secret, err := c.options.registerClient(ctx, f, defaultRedirectURI, f.resource.Scopes)
		if err != nil {
			return err
		}
		c.credentials.ClientID, c.credentials.ClientSecret, c.credentials.Issuer, c.credentials.RedirectURI = id, secret, f.issuer(), defaultRedirectURI
	}
	return cmp.Or(errors.Join(c.saveCredentials(), c.options.Store.addRefusal(c.options.Server.Name, c.options.Clock.Now())), ErrNeedsLogin)
}

func (c *Client) forgetRefusal() error {
	if c.options.Store.refusals().Get(c.options.Server.Name) == nil {
		return nil
	}
	unlock, err := c.options.Store.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return c.options.Store.writeRefusals(c.options.Store.refusals().Without(c.options.Server.Name))
}

// refusals returns the file of refusals; if it cannot be read, it counts as empty.
func (s Store) refusals() plainjson.Object {
	data, err := os.ReadFile(filepath.Join(filepath.Dir(s.Path), refusalsFile))
	if err != nil || s.Path == "" {
		return nil
	}
	doc, _ := plainjson.Parse(data) // errors are ignored, because the file is only a cache
	return doc
}

// addRefusal adds a server to the file of refusals. The caller must have locked the store.
func (s Store) addRefusal(server string, now time.Time) error {
	entry, err := plainjson.Marshal(refusalEntry{Timestamp: now.UnixMilli()})
	if err != nil {
		return err
	}
	return s.writeRefusals(s.refusals().Without(server).With(server, entry))
}

// writeRefusals replaces the file of refusals, or removes it if doc is empty. The caller must have locked the store.
func (s Store) writeRefusals(doc plainjson.Object) error {
	if s.Path == "" {
		return nil
	}
	file := filepath.Join(filepath.Dir(s.Path), refusalsFile)
	if len(doc) == 0 {
		if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return plainjson.ReplaceFile(file, doc.Raw(), 0o600)
}
