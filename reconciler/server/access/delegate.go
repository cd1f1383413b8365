package access

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Where a cluster publishes the CAs of its API server and its aggregator.
const (
	trustNamespace = "kube-system"
	trustName      = "extension-apiserver-authentication"
)

// How long the cluster's responses are cached: the defaults of aggregated API servers.
const (
	allowed = 10 * time.Second
	denied  = 10 * time.Second
)

// firstRead is how long New waits for the cluster.
const firstRead = 5 * time.Second

var retry = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 5}

// delegate returns an authenticator and an authorizer that use a cluster.
func delegate(ctx context.Context, kubeconfig string) (authenticator.Request, authorizer.Authorizer, error) {
	config, err := cluster(kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	clients, err := dynamiccertificates.NewDynamicCAFromConfigMapController("client-ca", trustNamespace, trustName, "client-ca-file", client)
	if err != nil {
		return nil, nil, err
	}
	proxies, err := dynamiccertificates.NewDynamicCAFromConfigMapController("front-proxy", trustNamespace, trustName, "requestheader-client-ca-file", client)
	if err != nil {
		return nil, nil, err
	}
	headers := headerrequest.NewRequestHeaderAuthRequestController(trustName, trustNamespace, client,
		"requestheader-username-headers", "requestheader-uid-headers", "requestheader-group-headers",
		"requestheader-extra-headers-prefix", "requestheader-allowed-names")
	first, cancel := context.WithTimeout(ctx, firstRead)
	defer cancel()
	if err := headers.RunOnce(first); err != nil && !unreachable(err) {
		return nil, nil, fmt.Errorf("read the ConfigMap %s/%s: %w", trustNamespace, trustName, err)
	}
	go clients.Run(ctx, 1)
	go proxies.Run(ctx, 1)
	go headers.Run(ctx, 1)
	who, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		TokenAccessReviewClient: client.AuthenticationV1(), TokenAccessReviewTimeout: 10 * time.Second,
		WebhookRetryBackoff: &retry, CacheTTL: allowed,
		ClientCertificateCAContentProvider: clients,
		RequestHeaderConfig: &authenticatorfactory.RequestHeaderConfig{
			CAContentProvider: proxies, UsernameHeaders: headerrequest.StringSliceProviderFunc(headers.UsernameHeaders),
			UIDHeaders: headerrequest.StringSliceProviderFunc(headers.UIDHeaders), GroupHeaders: headerrequest.StringSliceProviderFunc(headers.GroupHeaders),
			ExtraHeaderPrefixes: headerrequest.StringSliceProviderFunc(headers.ExtraHeaderPrefixes), AllowedClientNames: headerrequest.StringSliceProviderFunc(headers.AllowedClientNames),
		},
	}.New()
	if err != nil {
		return nil, nil, err
	}
	may, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(), AllowCacheTTL: allowed, DenyCacheTTL: denied, WebhookRetryBackoff: &retry,
	}.New()
	return who, may, err
}

// unreachable reports whether an error means that the cluster did not respond. Its data is read
// once it can be reached; requests are refused until then.
func unreachable(err error) bool {
	var request *url.Error
	return errors.As(err, &request) || errors.Is(err, context.DeadlineExceeded)
}

// cluster returns the configuration of that cluster.
func cluster(kubeconfig string) (*rest.Config, error) {
	if kubeconfig != "" {
		// An empty file is an error; clientcmd.BuildConfigFromFlags would use the cluster in
		// which gitfleet runs.
		config, err := (&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}).Load()
		switch {
		case err != nil:
			return nil, err
		case clientcmdapi.IsConfigEmpty(config):
			return nil, fmt.Errorf("%s is empty", kubeconfig)
		}
		return clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("%w; set server.kubeconfig where gitfleet runs in no cluster", err)
	}
	return config, nil
}
