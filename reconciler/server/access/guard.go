package access

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// unprotected are the paths without authentication. Requests to the webhook are signed.
var unprotected = []string{"/healthz", "/readyz", "/webhook"}

// IsOpen reports whether a path is served without authentication.
func IsOpen(path string) bool { return slices.Contains(unprotected, path) }

// Wrap passes on authenticated and authorized requests, with the user in their context.
// Requests for the judged paths, which are those of the Kubernetes API, are only authenticated
// here, since that API authorizes them by resource.
func (g *Guard) Wrap(next http.Handler, judged func(path string) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch {
		case IsOpen(req.URL.Path), g.cfg.OpenMetrics && req.URL.Path == "/metrics":
			next.ServeHTTP(w, req)
			return
		case g.crossSite(req):
			http.Error(w, "a page of another site sends this", http.StatusForbidden)
			return
		case g.who == nil:
			if g.cfg.Unauthenticated || IsLocalHost(req.Host) {
				next.ServeHTTP(w, req)
				return
			}
			// A web page can make its own name resolve to this machine. That name is in the
			// Host header.
			http.Error(w, "this daemon answers to localhost and 127.0.0.1 only; other names need server.tokenFile or server.clientCAFile", http.StatusForbidden)
			return
		}
		who, known := g.identify(req)
		switch {
		case !known:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "authentication required: send a token or a client certificate", http.StatusUnauthorized)
		case !judged(req.URL.Path) && !g.allows(req, who.User):
			http.Error(w, who.User.GetName()+" may not "+strings.ToLower(req.Method)+" "+req.URL.Path, http.StatusForbidden)
		default:
			// Credentials are not needed any more.
			req = req.WithContext(request.WithUser(req.Context(), who.User))
			req.Header.Del("Authorization")
			next.ServeHTTP(w, req)
		}
	})
}

// crossSite reports whether a browser sends the request for a page of another site. Reads count
// as well, since even a read would tell the page that the daemon exists.
func (g *Guard) crossSite(req *http.Request) bool {
	as := *req
	as.Method = http.MethodPost // the library lets all reads pass
	return g.site.Check(&as) != nil
}

func (g *Guard) identify(req *http.Request) (*authenticator.Response, bool) {
	who, known, err := g.who.AuthenticateRequest(req)
	return who, known && err == nil
}

func (g *Guard) allows(req *http.Request, who user.Info) bool {
	if g.may == nil {
		return true
	}
	decision, _, err := g.may.Authorize(req.Context(), authorizer.AttributesRecord{
		User: who, Verb: strings.ToLower(req.Method), Path: req.URL.Path,
	})
	return err == nil && decision == authorizer.DecisionAllow
}
