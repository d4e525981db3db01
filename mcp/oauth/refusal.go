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

type tokenlessRefusalEntry struct {
	Timestamp int64 `json:"timestamp"` // ms
}

// WasRefused reports whether the server refused a request without a token since the last login.
func (c *Client) WasRefused() (hasServerRefusedTokenlessRequest bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reloadCredentials() != nil || c.credentials.AccessToken != "" || c.credentials.RefreshToken != "" {
		return false
	}
	if d := c.credentials.Discovery; d != nil && d.MetadataFound && d.RefusedAt > 0 {
		return true
	}
	var last tokenlessRefusalEntry
	raw := c.options.Store.tokenlessRefusalsByServer().Get(c.options.Server.Name)
	return json.Unmarshal(raw, &last) == nil && c.options.Clock.Now().Sub(time.UnixMilli(last.Timestamp)) < refusalLifetime
}

// recordRefusalReturnNeedsLogin stores that the server refused a request without a token, and returns [ErrNeedsLogin]. If no client is
// known and the metadata offers no registration, it nevertheless first tries to register a client, as the real CLI does. If this fails, it
// returns the error of the registration and stores nothing. The caller must have locked the store.
func (c *Client) recordRefusalReturnNeedsLogin(ctx context.Context, f *discovery) error {
	f.stored.RefusedAt = c.options.Clock.Now().UnixMilli()
	if (!f.stored.MetadataFound || f.metadata.Registration == "" && !f.metadata.ClientDocument) && c.options.Config.ClientID == "" && c.credentials.ClientID == "" {
		id, secret, err := c.options.registerClient(ctx, f, defaultRedirectURI, f.resource.Scopes)
		if err != nil {
			return err
		}
		c.credentials.ClientID, c.credentials.ClientSecret, c.credentials.Issuer, c.credentials.RedirectURI = id, secret, f.issuer(), defaultRedirectURI
	}
	return cmp.Or(errors.Join(c.saveCredentialsLocked(), c.options.Store.addTokenlessRefusal(c.options.Server.Name, c.options.Clock.Now())), ErrNeedsLogin)
}

func (c *Client) forgetTokenlessRefusal() error {
	if c.options.Store.tokenlessRefusalsByServer().Get(c.options.Server.Name) == nil {
		return nil
	}
	unlock, err := c.options.Store.lockFile()
	if err != nil {
		return err
	}
	defer unlock()
	return c.options.Store.writeTokenlessRefusals(c.options.Store.tokenlessRefusalsByServer().Delete(c.options.Server.Name))
}

// tokenlessRefusalsByServer returns the file of refusals; if it cannot be read, it counts as empty.
func (s Store) tokenlessRefusalsByServer() plainjson.Object {
	data, err := os.ReadFile(filepath.Join(filepath.Dir(s.Path), refusalsFile))
	if err != nil || s.Path == "" {
		return nil
	}
	doc, _ := plainjson.Parse(data) // errors are ignored, because the file is only a cache
	return doc
}

// addTokenlessRefusal adds a server to the file of refusals. The caller must have locked the store.
func (s Store) addTokenlessRefusal(server string, refusedAt time.Time) error {
	entry, err := plainjson.Marshal(tokenlessRefusalEntry{Timestamp: refusedAt.UnixMilli()})
	if err != nil {
		return err
	}
	return s.writeTokenlessRefusals(s.tokenlessRefusalsByServer().Delete(server).Set(server, entry))
}

// writeTokenlessRefusals replaces the file of refusals, or removes it if there are none. The caller has locked the store.
func (s Store) writeTokenlessRefusals(refusalsByServer plainjson.Object) error {
	if s.Path == "" {
		return nil
	}
	file := filepath.Join(filepath.Dir(s.Path), refusalsFile)
	if len(refusalsByServer) == 0 {
		if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return plainjson.ReplaceFile(file, refusalsByServer.Raw(), 0o600)
}
