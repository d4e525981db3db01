package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// userAgent is the user agent of the SDK with which the real CLI sends (observed with 2.1.330).
const userAgent = "OTel-OTLP-Exporter-JavaScript/0.208.0"

type exporter struct {
	target Target
	signal string
	client *http.Client
}

// newExporter prepares an exporter; it connects when it sends.
func newExporter(t Target, signal string) *exporter {
	transport := &http.Transport{}
	if t.Protocol == grpc { // without TLS, HTTP/2 must be set; with TLS both sides negotiate it
		transport.Protocols = &http.Protocols{}
		transport.Protocols.SetHTTP2(true)
		transport.Protocols.SetUnencryptedHTTP2(true)
	}
	return &exporter{target: t, signal: signal, client: &http.Client{Transport: transport}}
}

func (e *exporter) send(ctx context.Context, request exportRequest) error {
	body, err := encode(request, e.target.Protocol)
	if err != nil {
		return err
	}
	url, kind := e.target.URL, "application/json"
	switch e.target.Protocol {
	case httpProtobuf:
		kind = "application/x-protobuf"
	case grpc:
		kind, url = "application/grpc", strings.TrimSuffix(url, "/")+grpcMethod(e.signal)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for _, h := range e.target.Headers {
		r.Header.Set(h[0], h[1])
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("User-Agent", userAgent)
	if e.target.Protocol == grpc {
		r.Header.Set("Te", "trailers")
	}
	response, err := e.client.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	switch status := response.Trailer.Get("Grpc-Status"); {
	case err != nil:
		return err
	case response.StatusCode >= http.StatusMultipleChoices:
		return fmt.Errorf("the collector answered %s", response.Status)
	case e.target.Protocol == grpc && status != "0":
		return fmt.Errorf("the collector answered with gRPC status %q", status)
	}
	return nil
}

func (e *exporter) close() { e.client.CloseIdleConnections() }

func grpcMethod(signal string) string {
	word := map[string]string{metricSignal: "metrics", logSignal: "logs", traceSignal: "trace"}[signal]
	return "/opentelemetry.proto.collector." + word + ".v1." + strings.ToUpper(word[:1]) + word[1:] + "Service/Export"
}
