package kubeapi

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
)

func (a *API) fail(w http.ResponseWriter, req *http.Request, err error) {
	responsewriters.ErrorNegotiated(err, a.codecs.CodecFactory, schema.GroupVersion{Version: "v1"}, w, req)
}

// notServed returns an error with a status code and a message. The library has no constructor that
// keeps the message for all codes. Clients may retry if the server is not ready yet.
func notServed(code int, info *request.RequestInfo, message string) error {
	resource, retryAfter := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}, 0
	if code == http.StatusServiceUnavailable {
		retryAfter = 1
	}
	err := apierrors.NewGenericServerResponse(code, info.Verb, resource, info.Name, "", retryAfter, false)
	err.ErrStatus.Message = message
	return err
}
