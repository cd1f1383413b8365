package kubeapi

import (
	"cmp"
	"io"
	"net/http"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// reviewCodecs decode and encode reviews in all media types.
var reviewCodecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	utilruntime.Must(authorizationv1.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme)
}()

// review responds whether the user is allowed to do something.
func (a *API) review(c *catalog, w http.ResponseWriter, req *http.Request) {
	raw, err := io.ReadAll(io.LimitReader(req.Body, maxBody))
	if err != nil {
		a.fail(w, req, apierrors.NewBadRequest(err.Error()))
		return
	}
	kind := authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview")
	object, _, err := reviewCodecs.UniversalDeserializer().Decode(raw, &kind, nil)
	review, ok := object.(*authorizationv1.SelfSubjectAccessReview)
	if err != nil || !ok {
		a.fail(w, req, apierrors.NewBadRequest("the body is no SelfSubjectAccessReview"))
		return
	}
	review.Status = authorizationv1.SubjectAccessReviewStatus{Reason: a.objection(c, review.Spec, req)}
	review.Status.Allowed = review.Status.Reason == ""
	responsewriters.WriteObjectNegotiated(reviewCodecs, negotiation.DefaultEndpointRestrictions, kind.GroupVersion(), w, req, http.StatusCreated, review, false)
}

// objection returns why the user is not allowed to do something; empty if they are.
func (a *API) objection(c *catalog, requested authorizationv1.SelfSubjectAccessReviewSpec, req *http.Request) string {
	of := authorizer.AttributesRecord{}
	of.User, _ = request.UserFrom(req.Context())
	switch r, n := requested.ResourceAttributes, requested.NonResourceAttributes; {
	case r != nil:
		if !c.has(r.Group, r.Version, r.Resource) {
			return "the hub has no such resource"
		}
		of.ResourceRequest, of.Verb, of.Namespace, of.Name = true, r.Verb, r.Namespace, r.Name
		of.APIGroup, of.APIVersion, of.Resource, of.Subresource = r.Group, r.Version, r.Resource, r.Subresource
	case n != nil:
		of.Verb, of.Path = n.Verb, n.Path
	default:
		return "the review names neither a resource nor a path"
	}
	if !slices.Contains(readVerbs, of.Verb) && !c.approves(of) {
		return "the hub is a Git repository, and this API only reads it"
	}
	if a.may == nil {
		return ""
	}
	decision, why, err := a.may.Authorize(req.Context(), of)
	switch {
	case err != nil:
		return err.Error()
	case decision != authorizer.DecisionAllow:
		return cmp.Or(why, "nobody allows it")
	}
	return ""
}

// approves reports whether a request would write the status of an approval request.
func (c *catalog) approves(of authorizer.AttributesRecord) bool {
	return slices.ContainsFunc(c.kinds, func(k *kind) bool {
		return k.group == of.APIGroup && k.plural == of.Resource && k.approves(of.Subresource, of.Verb)
	})
}

// has reports whether a resource is served: in any version if version is empty, and "*" stands
// for every resource.
func (c *catalog) has(group, version, resource string) bool {
	return resource == "*" || slices.ContainsFunc(c.kinds, func(k *kind) bool {
		return k.plural == resource && (k.group == group || group == "*") &&
			(version == "" || version == "*" || slices.Contains(k.versions, version))
	})
}
