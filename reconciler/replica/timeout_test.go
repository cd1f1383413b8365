package replica

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
)

// A request for the Lease that gets no response ends well before the deadline for renewing it.
func TestLeaseRequestsTimeOut(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-ended }))
	defer server.Close()
	defer close(ended)
	leases, err := coordination.NewForConfig(leaseConfig(&rest.Config{Host: server.URL}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), renewDeadline)
	defer cancel()
	began := time.Now()
	if _, err := leases.Leases("default").Get(ctx, "gitfleet", metav1.GetOptions{}); err == nil {
		t.Error("there was an answer")
	}
	if ctx.Err() != nil {
		t.Errorf("the request ended after %s", time.Since(began))
	}
}
