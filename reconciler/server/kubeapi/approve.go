package kubeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Decision approves or rejects a stage of a staged update run.
type Decision struct {
	Placement  api.PlacementKey
	Run, Stage string
	Before     bool // the beginning of the stage, and not its end
	Reject     bool
	// Code and Message are the reason and the message of the condition that the client has written.
	Code, Message string
	By            string // the authenticated user; empty for a local request without authentication
}

// approves reports whether a request writes the status of an approval request.
func (k *kind) approves(subresource, verb string) bool {
	return k.approvals && subresource == "status" && (verb == writeVerbs[0] || verb == writeVerbs[1])
}

// decide writes the condition Approved of an approval request: the only write of this API. The authorizer has allowed it.
func (a *API) decide(s *storage, info *request.RequestInfo, w http.ResponseWriter, req *http.Request) {
	req = req.WithContext(request.WithNamespace(req.Context(), info.Namespace)) // as the handlers of the library do for reads
	if err := a.decision(s, info, req); err != nil {
		a.fail(w, req, err)
		return
	}
	o := s.store.Get(s.kind.storeKey(), s.namespace(req.Context()), info.Name)
	if o == nil {
		a.fail(w, req, apierrors.NewNotFound(s.kind.resource(s.version).GroupResource(), info.Name))
		return
	}
	scope := a.scope(s)
	responsewriters.WriteObjectNegotiated(scope.Serializer, scope, scope.Kind.GroupVersion(), w, req, http.StatusOK, s.show(o), false)
}

// decision carries out what a client asks for.
func (a *API) decision(s *storage, info *request.RequestInfo, req *http.Request) error {
	by := ""
	if who, known := request.UserFrom(req.Context()); known && who.GetName() != user.Anonymous {
		by = who.GetName()
	}
	resource := s.kind.resource(s.version).GroupResource()
	if a.local != nil {
		if code, why := a.local(req, by); why != "" {
			return notServed(code, info, why)
		}
	}
	o := s.store.Get(s.kind.storeKey(), s.namespace(req.Context()), info.Name)
	switch {
	case a.approve == nil:
		return apierrors.NewMethodNotSupported(resource, info.Verb)
	case o == nil:
		return apierrors.NewNotFound(resource, info.Name)
	case req.URL.Query().Has("dryRun"):
		return apierrors.NewBadRequest("an approval has no dry run; send it without dryRun")
	}
	raw, err := o.JSON()
	if err != nil {
		return err
	}
	changed, err := patched(raw, req)
	if err != nil {
		return err
	}
	request := o.Value.(*api.ClusterApprovalRequest)
	d := Decision{Run: request.Spec.Run, Stage: request.Spec.Stage, Before: request.Name == api.ApprovalName(request.Spec.Run, request.Spec.Stage, true), By: by}
	was, is := meta.FindStatusCondition(request.Status.Conditions, api.Approved), meta.FindStatusCondition(changed.Status.Conditions, api.Approved)
	switch {
	case is != nil && was != nil && is.Status == was.Status:
		return nil // a repeated request
	case was != nil && was.Status == metav1.ConditionTrue:
		return apierrors.NewConflict(resource, info.Name, fmt.Errorf("the approval request has been approved and cannot be reverted"))
	case is == nil || is.Status != metav1.ConditionTrue && is.Status != metav1.ConditionFalse:
		return apierrors.NewBadRequest("only an approval may be written here: a condition of type Approved with the status True, or False to reject the stage")
	case is.ObservedGeneration != request.Generation:
		return apierrors.NewBadRequest(fmt.Sprintf("observedGeneration of the condition Approved must be %d, the generation of the request", request.Generation))
	}
	d.Reject, d.Code, d.Message = is.Status == metav1.ConditionFalse, is.Reason, is.Message
	if d.Placement = a.placementOf(request); d.Placement.Name == "" {
		return apierrors.NewConflict(resource, info.Name, fmt.Errorf("there is no update run %s", d.Run))
	}
	switch known, err := a.approve(req.Context(), d); {
	case err != nil && known:
		return apierrors.NewConflict(resource, info.Name, err)
	case err != nil:
		return apierrors.NewServiceUnavailable(err.Error())
	}
	return nil
}

// Approve carries out a decision. If it returns an error, refused says that the decision is impossible, and not only now. When it
// returns none, the objects that were published last have the result.
type Approve func(ctx context.Context, d Decision) (refused bool, err error)

// placementOf returns the placement of the run that a request is for; the zero key if there is no such run.
func (a *API) placementOf(r *api.ClusterApprovalRequest) api.PlacementKey {
	kind := runs
	if r.Namespace == "" {
		kind = clusterRuns
	}
	o := a.store.Get(kind.storeKey(), r.Namespace, r.Spec.Run)
	if o == nil {
		return api.PlacementKey{}
	}
	return api.PlacementKey{Namespace: r.Namespace, Name: o.Value.(*api.ClusterStagedUpdateRun).Spec.PlacementName}
}

// patched returns the object that a write of a client would make of one.
func patched(raw []byte, req *http.Request) (*api.ClusterApprovalRequest, error) {
	body, err := io.ReadAll(io.LimitReader(req.Body, maxBody))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	media, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type"))
	switch {
	case req.Method == http.MethodPut && media == "application/json":
		raw = body
	case req.Method == http.MethodPatch && media == string(types.MergePatchType):
		raw, err = jsonpatch.MergePatch(raw, body)
	case req.Method == http.MethodPatch && media == string(types.JSONPatchType):
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(body); err == nil {
			raw, err = patch.Apply(raw)
		}
	default:
		return nil, notServed(http.StatusUnsupportedMediaType, &request.RequestInfo{Verb: req.Method}, "the body is of an unsupported type: send a merge patch or a JSON patch, or PUT the object as JSON")
	}
	out := &api.ClusterApprovalRequest{}
	if err == nil {
		err = json.Unmarshal(raw, out)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return out, nil
}
