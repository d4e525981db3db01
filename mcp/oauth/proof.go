package oauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// boundTokenScheme is the scheme of tokens that are bound to a key, and the name of the header with the proof.
const boundTokenScheme = "DPoP"

func newProofKey() (*jose.JSONWebKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return &jose.JSONWebKey{Key: key}, err
}

// dpopProofTransport proves that the sender of a request has the key of its token (DPoP, RFC 9449). It does so in requests
// with a bound token and in requests for a token, and leaves other requests unchanged.
type dpopProofTransport struct {
	base       http.RoundTripper
	currentKey func() *jose.JSONWebKey // nil means that tokens are not bound to a key
	nonces     *sync.Map               // nonce for the next proof, by host
	clock      interface{ Now() time.Time }
}

// RoundTrip sends a request. If the server refuses it and returns a new nonce, RoundTrip repeats it with that nonce.
func (p dpopProofTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	if scheme != boundTokenScheme {
		token = ""
	}
	key := p.currentKey()
	if key == nil || token == "" && req.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		return p.base.RoundTrip(req)
	}
	for attempt := 0; ; attempt++ {
		used, _ := p.nonces.Load(req.URL.Host)
		proof, err := p.signProof(key, req, token, used)
		if err != nil {
			return nil, err
		}
		proved := req.Clone(req.Context())
		proved.Header.Set(boundTokenScheme, proof)
		if attempt > 0 && req.GetBody != nil {
			if proved.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
		resp, err := p.base.RoundTrip(proved)
		if err != nil {
			return nil, err
		}
		nonce := resp.Header.Get("DPoP-Nonce")
		if nonce != "" {
			p.nonces.Store(req.URL.Host, nonce)
		}
		refused := resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusUnauthorized
		if !refused || nonce == "" || nonce == used || attempt > 0 || req.Body != nil && req.GetBody == nil {
			return resp, nil
		}
		resp.Body.Close()
	}
}

// signProof returns a signed statement that the holder of key sends this request; nonce is nil or a string.
func (p dpopProofTransport) signProof(key *jose.JSONWebKey, req *http.Request, token string, nonce any) (string, error) {
	claims := map[string]any{"jti": rand.Text(), "htm": req.Method, "htu": req.URL.Scheme + "://" + req.URL.Host + req.URL.EscapedPath(), "iat": p.clock.Now().Unix()}
	if nonce != nil {
		claims["nonce"] = nonce
	}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		claims["ath"] = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	return signClaims(jose.SigningKey{Algorithm: jose.ES256, Key: key}, (&jose.SignerOptions{EmbedJWK: true}).WithType("dpop+jwt"), claims)
}

func signClaims(key jose.SigningKey, o *jose.SignerOptions, claims map[string]any) (string, error) {
	signer, err := jose.NewSigner(key, o)
	if err != nil {
		return "", err
	}
	payload, err := plainjson.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
