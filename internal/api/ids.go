package api

import (
	"encoding/base32"
	"strings"

	"github.com/claudeless/claudeless/internal/api/history"
)

// idSource derives ids in the API's form from a seed and a history: the same answer to the same history
// has the same ids on every server with the same seed.
type idSource struct{ Seed history.Digest }

// ID returns an id with a prefix such as "msg_".
func (s idSource) ID(prefix string, key history.Digest, parts ...string) string {
	sum := s.Seed.Chain(append([]string{prefix, string(key[:])}, parts...)...)
	return prefix + "_01" + strings.ToLower(idEncoding.EncodeToString(sum[:]))[:22]
}

// idEncoding writes ids; constant: only read.
var idEncoding = base32.HexEncoding.WithPadding(base32.NoPadding)
