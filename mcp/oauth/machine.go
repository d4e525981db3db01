package oauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/mark3labs/mcp-go/client/transport"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// machineToken gets a token for a client that logs in as itself (client_credentials), which mcp-go does not do. A
// secret that is a private key signs an assertion (private_key_jwt, RFC 7523) and is not sent.
func machineToken(ctx context.Context, o *clientcredentials.Config, issuer string, now time.Time) (*transport.Token, error) {
	if isPrivateKey(o.ClientSecret) {
		assertion, err := signAssertion(o, issuer, now)
		if err != nil {
			return nil, err
		}
		o.ClientSecret, o.AuthStyle = "", oauth2.AuthStyleInParams
		o.EndpointParams.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		o.EndpointParams.Set("client_assertion", assertion)
	}
	token, err := o.Token(ctx)
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.ErrorCode != "" {
		return nil, transport.OAuthError{ErrorCode: refused.ErrorCode, ErrorDescription: refused.ErrorDescription}
	} else if ok {
		return nil, fmt.Errorf("token request failed with status %d", refused.Response.StatusCode)
	}
	if err != nil {
		return nil, err
	}
	seconds, _ := token.Extra("expires_in").(float64)
	scope, _ := token.Extra("scope").(string)
	return &transport.Token{AccessToken: token.AccessToken, TokenType: token.TokenType, ExpiresIn: int64(seconds), Scope: scope}, nil
}

// signAssertion returns a token that proves a client's identity to an authorization server and expires after a minute.
func signAssertion(o *clientcredentials.Config, issuer string, now time.Time) (string, error) {
	block, _ := pem.Decode([]byte(o.ClientSecret))
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return "", errors.New("the client secret is a private key, but not in PKCS #8 form")
	}
	algorithm := jose.EdDSA
	switch k := key.(type) {
	case *rsa.PrivateKey:
		algorithm = jose.RS256
	case *ecdsa.PrivateKey:
		algorithm = map[int]jose.SignatureAlgorithm{256: jose.ES256, 384: jose.ES384, 521: jose.ES512}[k.Params().BitSize]
	}
	return signClaims(jose.SigningKey{Algorithm: algorithm, Key: key}, new(jose.SignerOptions).WithType("JWT"), map[string]any{
		"iss": o.ClientID, "sub": o.ClientID, "aud": issuer, "jti": rand.Text(), "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
	})
}

func isPrivateKey(secret string) bool {
	block, _ := pem.Decode([]byte(secret))
	return block != nil
}
