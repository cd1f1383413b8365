package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// FleetHeader and SourceHeader are headers of a request: the name of the fleet that the client means, and the repository that it
// follows. If the name is empty, the repository decides. SourceHeader is also one of a response that refuses a request.
const FleetHeader, SourceHeader = "Gitfleet-Fleet", "Gitfleet-Source"

// CloneHeader and DirectoryHeader are headers of a request that is made in a clone, without a configuration: the repository of
// each of its remotes, and the directory of the clone that the client is in.
const CloneHeader, DirectoryHeader = "Gitfleet-Clone", "Gitfleet-Directory"

// A fleetIdentity is the name of a fleet and the repository that it follows.
type fleetIdentity struct{ name, source string }

// DescribeFleet names a fleet for people. The name may be empty.
func DescribeFleet(name, source string) string {
	if name == "" {
		return "the fleet of " + source
	}
	return fmt.Sprintf("the fleet %q of %s", name, source)
}

// ofFleet refuses requests for another fleet before they do anything.
func (s *Server) ofFleet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if is := s.fleet.Load(); is != nil && is.isAnother(req.Header) {
			w.Header().Set(SourceHeader, is.source)
			http.Error(w, DescribeFleet(is.name, is.source), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, req)
	})
}

// isAnother reports whether a request is for another fleet.
func (is *fleetIdentity) isAnother(header http.Header) bool {
	if name := header.Get(FleetHeader); name != "" {
		return name != is.name
	}
	if source := header.Get(SourceHeader); source != "" {
		return source != is.source
	}
	remotes := header.Values(CloneHeader)
	return len(remotes) > 0 && !IsCloneOf(is.source, remotes, header.Get(DirectoryHeader))
}

// IsCloneOf reports whether a directory of a clone may be of the hub that a source names, as settings.SourceConfig.Identity
// returns it. It is if a remote has the same path, or the end of it, since a repository has more than one address: that of an
// internal network, an alias of SSH, a proxy. The directory has to be above or below that of the source, or be it. References are
// not compared: a clone has any number of branches.
func IsCloneOf(source string, remotes []string, directory string) bool {
	source, _, _ = strings.Cut(source, "?")
	repository, hub, _ := strings.Cut(strings.TrimPrefix(source, "file:///"), "//")
	if strings.HasPrefix(source, "file:///") {
		repository = "/" + repository // without a host
	}
	is := pathOf(repository)
	found := slices.ContainsFunc(remotes, func(r string) bool {
		other := pathOf(strings.TrimPrefix(r, "file://"))
		n := min(len(is), len(other))
		return slices.Equal(is[len(is)-n:], other[len(other)-n:])
	})
	return found && (isWithin(directory, hub) || isWithin(hub, directory))
}

// pathOf returns the elements of the path of HOST/PATH, without what only some addresses of a repository have.
func pathOf(repository string) []string {
	_, path, _ := strings.Cut(strings.ToLower(repository), "/")
	return slices.DeleteFunc(strings.Split(path, "/"), func(e string) bool { return e == "" || e == "_git" })
}

// isWithin reports whether a directory is another one, or below it. The root of the repository is empty or a dot.
func isWithin(directory, other string) bool {
	return other == "" || other == "." || directory == other || strings.HasPrefix(directory, other+"/")
}
