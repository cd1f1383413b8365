// Package apiserver has fake API servers for unit tests of clients.
package apiserver

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// A RoundTrip is a transport that is a function.
type RoundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// An Answer is a transport that is a function, and never fails.
type Answer func(*http.Request) *http.Response

// RoundTrip implements http.RoundTripper.
func (f Answer) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// Config returns the client configuration of a test server that uses TLS.
func Config(server *httptest.Server) *rest.Config {
	return &rest.Config{
		Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
	}
}

// Refuse answers as an API server does when it refuses a request.
func Refuse(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(metav1.Status{ //nolint:errcheck // the test would see it
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Message: message, Reason: reasons[code],
	})
}

// Refusal is the error of a request that an API server has answered like Refuse, but without a reason.
func Refusal(code int, message string) error {
	err := apierrors.NewGenericServerResponse(code, http.MethodPatch, schema.GroupResource{Resource: "configmaps"}, "one", "", 0, false)
	err.ErrStatus.Message = message
	return err
}

var reasons = map[int]metav1.StatusReason{
	http.StatusUnauthorized: metav1.StatusReasonUnauthorized, http.StatusForbidden: metav1.StatusReasonForbidden,
	http.StatusConflict: metav1.StatusReasonAlreadyExists,
	http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
}

// A Repeat reads as one byte, without end.
type Repeat byte

// Read implements io.Reader.
func (b Repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}
