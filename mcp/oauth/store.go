package oauth

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-jose/go-jose/v4"
	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// Server identifies a server by its name, type, URL and headers.
type Server struct {
	Name    string
	Type    string // http or sse
	URL     string
	Headers map[string]string // as configured
}

// Store is the file with the credentials of all servers, in the format of the real CLI (.credentials.json). Keys that
// other programs have written stay unchanged. Several processes may use it at the same time.
type Store struct {
	Path string // empty means nothing is stored
}

const (
	tokensKey  = "mcpOAuth"
	secretsKey = "mcpOAuthClientConfig"
)

type credentials struct {
	ServerName   string           `json:"serverName"`
	ServerURL    string           `json:"serverUrl"`
	AccessToken  string           `json:"accessToken"`
	Discovery    *storedDiscovery `json:"discoveryState,omitempty"`
	ClientID     string           `json:"clientId,omitempty"`
	ClientSecret string           `json:"clientSecret,omitempty"`
	Issuer       string           `json:"issuer,omitempty"` // the authorization server at which ClientID is registered
	RedirectURI  string           `json:"redirectUri,omitempty"`
	RefreshToken string           `json:"refreshToken,omitempty"`
	ExpiresAt    int64            `json:"expiresAt,omitempty"` // ms; 0 means never
	Scope        string           `json:"scope,omitempty"`
	// StepUpScope lists scopes to request at the next login. It is set if a call lacked one of them.
	StepUpScope string `json:"stepUpScope,omitempty"`
	// ProofKey is the key to which the tokens are bound; nil means that they are bearer tokens.
	ProofKey *jose.JSONWebKey `json:"dpopKey,omitempty"`
}

type storedDiscovery struct {
	Server        string `json:"authorizationServerUrl"`
	MetadataFound bool   `json:"oauthMetadataFound"`
	ResourceURL   string `json:"resourceMetadataUrl,omitempty"` // URL of the protected resource metadata
	Resource      string `json:"resource,omitempty"`            // the resource indicator; empty means the URL of the server
	RefusedAt     int64  `json:"tokenlessRejectedAt,omitempty"` // when the server refused a request without a token, in ms
}

// clientSecret is the stored data of a client that was registered by hand.
type clientSecret struct {
	Value string `json:"clientSecret"`
}

func (s Server) credentialsEntryKey() string {
	headers := s.Headers
	if headers == nil {
		headers = map[string]string{}
	}
	identity, err := plainjson.Marshal(struct {
		Type    string            `json:"type"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
	}{s.Type, s.URL, headers})
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return fmt.Sprintf("%s|%.8x", s.Name, sha256.Sum256(identity))
}

// lockFile prevents other processes from changing the file until unlock is called.
func (s Store) lockFile() (unlock func(), err error) {
	if s.Path == "" {
		return func() {}, nil
	}
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o700); err != nil {
		return nil, err
	}
	return lockedfile.MutexAt(s.Path + ".lock").Lock()
}

// readFile returns the file as an object; a missing file counts as an empty object.
func (s Store) readFile() (plainjson.Object, error) {
	data, err := os.ReadFile(s.Path)
	if errors.Is(err, fs.ErrNotExist) || s.Path == "" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	doc, err := plainjson.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s is not a JSON object\nhint: delete the file and log in again", s.Path) // the parser's error quotes the content
	}
	return doc, nil
}

// loadEntry reads into entry the value of key in the object that the file has under member. A missing value changes nothing.
func (s Store) loadEntry(member, key string, entry any) error {
	doc, err := s.readFile()
	if err != nil {
		return err
	}
	entries := map[string]json.RawMessage{}
	if raw := doc.Get(member); raw == nil || json.Unmarshal(raw, &entries) != nil || entries[key] == nil {
		return nil
	}
	if json.Unmarshal(entries[key], entry) != nil {
		return fmt.Errorf("the entry %q of %s cannot be read\nhint: log out and in again", key, s.Path)
	}
	return nil
}

// saveEntry replaces one entry in a member of the file; nil removes it. The caller must have locked the file.
func (s Store) saveEntry(member, key string, entry any) error {
	if s.Path == "" {
		return nil
	}
	doc, err := s.readFile()
	if err != nil {
		return err
	}
	var entries plainjson.Object
	if raw := doc.Get(member); raw != nil {
		if entries, err = plainjson.Parse(raw); err != nil {
			return fmt.Errorf("the key %s of %s must be a JSON object", member, s.Path)
		}
	}
	entries = entries.Delete(key)
	if entry != nil {
		raw, err := plainjson.Marshal(entry)
		if err != nil {
			return err
		}
		entries = entries.Set(key, raw)
	}
	return plainjson.ReplaceFileDurably(s.Path, doc.Set(member, entries.Raw()).Raw(), 0o600)
}
