package simulated

import (
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

func (q *request) post(c *Cluster, body []byte) (int, any, error) {
	if q.kind.namespaced && q.namespace == "" {
		return 0, nil, apierrors.NewMethodNotSupported(q.kind.resource(), "create")
	}
	u, err := decode(body)
	if err != nil {
		return 0, nil, err
	}
	o, err := c.create(q.kind, q.namespace, u.Object, q.manager(), q.dry())
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, q.shown(o), nil
}

func (q *request) put(c *Cluster, before *object, body []byte) (int, any, error) {
	u, err := decode(body)
	if err != nil {
		return 0, nil, err
	}
	o, err := c.replace(q.kind, q.sub, before, u.Object, q.manager(), q.dry())
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, q.shown(o), nil
}

func (q *request) apply(c *Cluster, body []byte) (int, any, error) {
	query := q.URL.Query()
	if query.Get("fieldManager") == "" {
		return 0, nil, apierrors.NewBadRequest("PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch")
	}
	o, created, err := c.apply(q.kind, q.sub, q.namespace, q.name, body, query.Get("fieldManager"), query.Get("force") == "true", q.dry())
	if err != nil {
		return 0, nil, err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return status, q.shown(o), nil
}

func (q *request) patch(c *Cluster, before *object, body []byte) (int, any, error) {
	was := []byte(marshal(before.whole()))
	var now []byte
	var err error
	switch q.patchType() {
	case "application/merge-patch+json":
		now, err = jsonpatch.MergePatch(was, body)
	case "application/json-patch+json":
		var p jsonpatch.Patch
		if p, err = jsonpatch.DecodePatch(body); err == nil {
			now, err = p.Apply(was)
		}
		if err != nil {
			return 0, nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", q.kind.resource(), q.name, err.Error(), 0, false)
		}
	case "application/strategic-merge-patch+json":
		typed, none := scheme.Scheme.New(q.kind.GroupVersionKind)
		if none != nil {
			return 0, nil, unsupported(q.patchType())
		}
		now, err = strategicpatch.StrategicMergePatch(was, body, typed)
	default:
		return 0, nil, unsupported(q.patchType())
	}
	o := map[string]any{}
	if err == nil {
		err = json.Unmarshal(now, &o)
	}
	if err != nil {
		return 0, nil, apierrors.NewBadRequest(err.Error())
	}
	after, err := c.replace(q.kind, q.sub, before, o, q.manager(), q.dry())
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, q.shown(after), nil
}

func unsupported(contentType string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: fmt.Sprintf("the body of the request was in an unknown format - %s is not served", contentType),
	}}
}

func (q *request) delete(c *Cluster, before *object, body []byte) (int, any, error) {
	opts, err := q.deletion(body)
	if err != nil {
		return 0, nil, err
	}
	o, err := c.remove(before, opts)
	switch {
	case err != nil:
		return 0, nil, err
	case o != nil:
		return http.StatusOK, q.shown(o), nil
	}
	return http.StatusOK, &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess, Details: before.details(),
	}, nil
}

func (q *request) deletion(body []byte) (metav1.DeleteOptions, error) {
	var opts metav1.DeleteOptions
	if len(body) > 0 {
		if err := json.Unmarshal(body, &opts); err != nil {
			return opts, apierrors.NewBadRequest(err.Error())
		}
	}
	if q.dry() {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	return opts, nil
}

func (q *request) deleteAll(c *Cluster, body []byte) (int, any, error) {
	opts, err := q.deletion(body)
	if err != nil {
		return 0, nil, err
	}
	chosen, err := q.chosen()
	if err != nil {
		return 0, nil, err
	}
	var gone []*object
	for _, o := range c.list(q.kind, q.namespace) {
		if !chosen(o) {
			continue
		}
		if _, err := c.remove(o, opts); err != nil {
			return 0, nil, err
		}
		gone = append(gone, o)
	}
	return http.StatusOK, q.page(c, gone, "", 0), nil
}
