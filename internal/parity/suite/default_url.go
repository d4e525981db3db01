package suite

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"time"
)

const apiHost = "api.anthropic.com"

// tlsFront serves the default URL by forwarding requests to the backend.
type tlsFront struct {
	server *http.Server
	done   chan error // receives the error of the server
}

// listenTLS listens on port 443 of loopback for [apiHost] and forwards requests to backend. It writes to caFile the
// certificate of the authority that the programs must trust.
func listenTLS(backend *url.URL, caFile string) (*tlsFront, error) {
	cert, ca, err := newCertificate()
	if err != nil {
		return nil, fmt.Errorf("creating a certificate: %w", err)
	}
	if err := os.WriteFile(caFile, ca, 0o644); err != nil {
		return nil, err
	}
	ln, err := tls.Listen("tcp", "127.0.0.1:443", &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12})
	if err != nil {
		return nil, fmt.Errorf("listening at the default URL: %w", err)
	}
	f := &tlsFront{done: make(chan error, 1), server: &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler:           &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(backend) }},
	}}
	go func() { f.done <- f.server.Serve(ln) }() // returns after Close
	return f, nil
}

// Close ends the server and its connections.
func (f *tlsFront) Close() error {
	err := f.server.Close()
	if served := <-f.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// newCertificate creates a certificate for [apiHost] and the authority that signed it, in PEM.
func newCertificate() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "claudeless parity"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	rawCA, err := x509.CreateCertificate(rand.Reader, authority, authority, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: apiHost}, DNSNames: []string{apiHost},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, server, authority, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rawCA})
	return tls.Certificate{Certificate: [][]byte{raw, rawCA}, PrivateKey: key}, ca, nil
}
