package replay

import (
	"encoding/base32"
	"strings"

	"github.com/claudeless/claudeless/internal/api/history"
)

// IDs makes ids of the API's form from what they stand for: the same answer to the
// same history has the same ids on every server with the same seed.
type IDs struct{ Seed history.Digest }

// ID is the id of a thing of that kind.
func (s IDs) ID(prefix string, key history.Digest, parts ...string) string {
	sum := s.Seed.Chain(append([]string{prefix, string(key[:])}, parts...)...)
	return prefix + "_01" + strings.ToLower(idText.EncodeToString(sum[:]))[:22]
}

// idText writes ids; constant: only read.
var idText = base32.HexEncoding.WithPadding(base32.NoPadding)
