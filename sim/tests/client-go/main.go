// Uses an API as controllers do: a typed client that speaks protobuf, an informer that streams its lists, patches and
// conflicts. The address is the only argument. It prints a line for each thing that works and fails at the first that
// does not.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
)

const namespace = "clients"

func main() {
	config := &rest.Config{Host: os.Args[1], QPS: 200, Burst: 200}
	typed := rest.CopyConfig(config)
	typed.ContentType = "application/vnd.kubernetes.protobuf"
	typed.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(typed)
	check("client", err)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()

	create(ctx, client)
	list(ctx, client)
	informer(ctx, client)
	conflict(ctx, client)
	workloads(ctx, client)
	others(ctx, config)
}

func check(what string, err error) {
	if err != nil {
		fmt.Printf("FAILED %s: %v\n", what, err)
		os.Exit(1)
	}
}

func must(what string, holds bool) {
	if !holds {
		check(what, fmt.Errorf("does not hold"))
	}
	fmt.Println("ok", what)
}

func settings(name string) *core.ConfigMap {
	return &core.ConfigMap{
		ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}},
		Data:       map[string]string{"k": name},
		BinaryData: map[string][]byte{"b": {0, 255, 7}},
	}
}

func create(ctx context.Context, client kubernetes.Interface) {
	ns := &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: namespace}}
	_, err := client.CoreV1().Namespaces().Create(ctx, ns, meta.CreateOptions{})
	check("create namespace", err)
	for _, name := range []string{"a", "b", "c"} {
		made, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, settings(name), meta.CreateOptions{})
		check("create", err)
		must("created "+name, made.UID != "" && string(made.BinaryData["b"]) == "\x00\xff\x07" && made.Data["k"] == name)
	}
	_, err = client.CoreV1().ConfigMaps(namespace).Create(ctx, settings("a"), meta.CreateOptions{})
	must("a second creation is refused", errors.IsAlreadyExists(err))
	_, err = client.CoreV1().ConfigMaps(namespace).Get(ctx, "none", meta.GetOptions{})
	must("an absent object is not found", errors.IsNotFound(err))
}

func list(ctx context.Context, client kubernetes.Interface) {
	pages := 0
	all := pager.New(func(ctx context.Context, options meta.ListOptions) (runtime.Object, error) {
		pages++
		return client.CoreV1().ConfigMaps(namespace).List(ctx, options)
	})
	all.PageSize = 2
	seen := 0
	err := all.EachListItem(ctx, meta.ListOptions{LabelSelector: "app=web"}, func(runtime.Object) error {
		seen++
		return nil
	})
	check("list", err)
	must("lists come in pages", pages >= 2 && seen == 3)
}

func informer(ctx context.Context, client kubernetes.Interface) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	maps := factory.Core().V1().ConfigMaps()
	events := make(chan string, 100)
	say := func(kind string, object any) {
		if one, ok := object.(*core.ConfigMap); ok {
			events <- kind + " " + one.Name + " " + one.Data["k"]
		}
	}
	_, err := maps.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { say("add", object) },
		UpdateFunc: func(_, object any) { say("update", object) },
		DeleteFunc: func(object any) { say("delete", object) },
	})
	check("handler", err)
	factory.Start(ctx.Done())
	must("the informer is in sync", cache.WaitForCacheSync(ctx.Done(), maps.Informer().HasSynced))
	wait := func(text string) {
		for {
			select {
			case event := <-events:
				if event == text {
					fmt.Println("ok the informer saw", text)
					return
				}
			case <-ctx.Done():
				check("the informer", fmt.Errorf("never saw %q", text))
			}
		}
	}
	wait("add c c")
	api := client.CoreV1().ConfigMaps(namespace)
	for kind, body := range map[types.PatchType]string{
		types.MergePatchType:          `{"data":{"k":"merged"}}`,
		types.StrategicMergePatchType: `{"data":{"k":"strategic"},"metadata":{"finalizers":["example.com/hold"]}}`,
		types.JSONPatchType:           `[{"op":"replace","path":"/data/k","value":"json"}]`,
	} {
		patched, err := api.Patch(ctx, "a", kind, []byte(body), meta.PatchOptions{})
		check(string(kind), err)
		wait("update a " + patched.Data["k"])
	}
	options := meta.DeleteOptions{Preconditions: meta.NewUIDPreconditions("11111111-1111-4111-8111-111111111111")}
	must("a precondition holds", errors.IsConflict(api.Delete(ctx, "b", options)))
	check("delete", api.Delete(ctx, "b", meta.DeleteOptions{}))
	wait("delete b b")
	found, err := maps.Lister().ConfigMaps(namespace).Get("a")
	check("lister", err)
	must("the cache is what the server has", found.Data["k"] != "a")
}

func conflict(ctx context.Context, client kubernetes.Interface) {
	api := client.CoreV1().ConfigMaps(namespace)
	stale, err := api.Get(ctx, "c", meta.GetOptions{})
	check("get", err)
	newer := stale.DeepCopy()
	newer.Data["n"] = "1"
	_, err = api.Update(ctx, newer, meta.UpdateOptions{})
	check("update", err)
	stale.Data["n"] = "2"
	_, err = api.Update(ctx, stale, meta.UpdateOptions{})
	must("a stale update conflicts", errors.IsConflict(err))
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		fresh, err := api.Get(ctx, "c", meta.GetOptions{})
		if err != nil {
			return err
		}
		fresh.Data["n"] = "2"
		_, err = api.Update(ctx, fresh, meta.UpdateOptions{})
		return err
	})
	check("retry", err)
	fmt.Println("ok a retried update lands")
}

func workloads(ctx context.Context, client kubernetes.Interface) {
	one := int32(1)
	labels := map[string]string{"app": "web"}
	pod := core.PodTemplateSpec{
		ObjectMeta: meta.ObjectMeta{Labels: labels},
		Spec:       core.PodSpec{Containers: []core.Container{{Name: "main", Image: "nginx:1"}}},
	}
	deployment := &apps.Deployment{
		ObjectMeta: meta.ObjectMeta{Name: "web"},
		Spec:       apps.DeploymentSpec{Replicas: &one, Selector: &meta.LabelSelector{MatchLabels: labels}, Template: pod},
	}
	api := client.AppsV1().Deployments(namespace)
	made, err := api.Create(ctx, deployment, meta.CreateOptions{})
	check("create deployment", err)
	must("a deployment has its defaults", *made.Spec.RevisionHistoryLimit == 10 && made.Spec.Strategy.RollingUpdate != nil)
	scale, err := api.UpdateScale(ctx, "web", &autoscaling.Scale{
		ObjectMeta: meta.ObjectMeta{Name: "web", Namespace: namespace},
		Spec:       autoscaling.ScaleSpec{Replicas: 2},
	}, meta.UpdateOptions{})
	check("scale", err)
	must("a deployment is scaled", scale.Spec.Replicas == 2)
	single := &core.Pod{ObjectMeta: meta.ObjectMeta{Name: "single"}, Spec: pod.Spec}
	_, err = client.CoreV1().Pods(namespace).Create(ctx, single, meta.CreateOptions{})
	check("create pod", err)
	eviction := &policy.Eviction{ObjectMeta: meta.ObjectMeta{Name: "single", Namespace: namespace}}
	check("evict", client.PolicyV1().Evictions(namespace).Evict(ctx, eviction))
	fmt.Println("ok a pod is evicted")
}

func others(ctx context.Context, config *rest.Config) {
	resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	untyped, err := dynamic.NewForConfig(config)
	check("dynamic client", err)
	items, err := untyped.Resource(resource).Namespace(namespace).List(ctx, meta.ListOptions{})
	check("dynamic list", err)
	must("a dynamic client lists", len(items.Items) == 2)
	bare, err := metadata.NewForConfig(config)
	check("metadata client", err)
	heads, err := bare.Resource(resource).Namespace(namespace).List(ctx, meta.ListOptions{})
	check("metadata list", err)
	must("a metadata client lists", len(heads.Items) == 2 && heads.Items[0].Kind == "PartialObjectMetadata")
	watch, err := untyped.Resource(resource).Namespace(namespace).Watch(ctx, meta.ListOptions{ResourceVersion: items.GetResourceVersion()})
	check("watch", err)
	check("delete collection", untyped.Resource(resource).Namespace(namespace).DeleteCollection(ctx, meta.DeleteOptions{}, meta.ListOptions{}))
	event := <-watch.ResultChan()
	must("a watch sees a collection go", event.Type == "DELETED" || event.Type == "MODIFIED")
}
