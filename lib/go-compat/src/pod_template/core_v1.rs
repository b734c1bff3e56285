//! Types of core/v1 as of Kubernetes 1.32, fields in the order Go declares them.
//!
//! Generated; see `gen/README.md`.

use super::table::{Kind::{Any, Bool, Int, IntOrString, List, Map, Pointer, Quantity, String, Struct as Of, Time}, Struct, always, unless_empty};

pub(super) static AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE: Struct = Struct { fields: &[
    always("volumeID", String),
    unless_empty("fsType", String),
    unless_empty("partition", Int),
    unless_empty("readOnly", Bool),
] };

pub(super) static AFFINITY: Struct = Struct { fields: &[
    unless_empty("nodeAffinity", Pointer(&Of(&NODE_AFFINITY))),
    unless_empty("podAffinity", Pointer(&Of(&POD_AFFINITY))),
    unless_empty("podAntiAffinity", Pointer(&Of(&POD_ANTI_AFFINITY))),
] };

pub(super) static APP_ARMOR_PROFILE: Struct = Struct { fields: &[
    always("type", String),
    unless_empty("localhostProfile", Pointer(&String)),
] };

pub(super) static AZURE_DISK_VOLUME_SOURCE: Struct = Struct { fields: &[
    always("diskName", String),
    always("diskURI", String),
    unless_empty("cachingMode", Pointer(&String)),
    unless_empty("fsType", Pointer(&String)),
    unless_empty("readOnly", Pointer(&Bool)),
    unless_empty("kind", Pointer(&String)),
] };

pub(super) static AZURE_FILE_VOLUME_SOURCE: Struct = Struct { fields: &[
    always("secretName", String),
    always("shareName", String),
    unless_empty("readOnly", Bool),
] };

pub(super) static CSI_VOLUME_SOURCE: Struct = Struct { fields: &[
    always("driver", String),
    unless_empty("readOnly", Pointer(&Bool)),
    unless_empty("fsType", Pointer(&String)),
    unless_empty("volumeAttributes", Map(&String)),
    unless_empty("nodePublishSecretRef", Pointer(&Of(&LOCAL_OBJECT_REFERENCE))),
] };

pub(super) static CAPABILITIES: Struct = Struct { fields: &[
    unless_empty("add", List(&String)),
    unless_empty("drop", List(&String)),
] };

pub(super) static CEPH_FS_VOLUME_SOURCE: Struct = Struct { fields: &[
    always("monitors", List(&String)),
    unless_empty("path", String),
    unless_empty("user", String),
    unless_empty("secretFile", String),
    unless_empty("secretRef", Pointer(&Of(&LOCAL_OBJECT_REFERENCE))),
    unless_empty("readOnly", Bool),
] };

pub(super) static CINDER_VOLUME_SOURCE: Struct = Struct { fields: &[
    always("volumeID", String),
    unless_empty("fsType", String),
    unless_empty("readOnly", Bool),
    unless_empty("secretRef", Pointer(&Of(&LOCAL_OBJECT_REFERENCE))),
] };

pub(super) static CLUSTER_TRUST_BUNDLE_PROJECTION: Struct = Struct { fields: &[
    unless_empty("name", Pointer(&String)),
    unless_empty("signerName", Pointer(&String)),
    unless_empty("labelSelector", Pointer(&Of(&LABEL_SELECTOR))),
    unless_empty("optional", Pointer(&Bool)),
    always("path", String),
] };

pub(super) static CONFIG_MAP_ENV_SOURCE: Struct = Struct { fields: &[
    unless_empty("name", String),
    unless_empty("optional", Pointer(&Bool)),
] };

pub(super) static CONFIG_MAP_KEY_SELECTOR: Struct = Struct { fields: &[
    unless_empty("name", String),
    always("key", String),
    unless_empty("optional", Pointer(&Bool)),
] };

pub(super) static CONFIG_MAP_PROJECTION: Struct = Struct { fields: &[
    unless_empty("name", String),
    unless_empty("items", List(&Of(&KEY_TO_PATH))),
    unless_empty("optional", Pointer(&Bool)),
] };

pub(super) static CONFIG_MAP_VOLUME_SOURCE: Struct = Struct { fields: &[
    unless_empty("name", String),
    unless_empty("items", List(&Of(&KEY_TO_PATH))),
    unless_empty("defaultMode", Pointer(&Int)),
    unless_empty("optional", Pointer(&Bool)),
] };

pub(super) static CONTAINER: Struct = Struct { fields: &[
    always("name", String),
    unless_empty("image", String),
    unless_empty("command", List(&String)),
    unless_empty("args", List(&String)),
    unless_empty("workingDir", String),
    unless_empty("ports", List(&Of(&CONTAINER_PORT))),
    unless_empty("envFrom", List(&Of(&ENV_FROM_SOURCE))),
    unless_empty("env", List(&Of(&ENV_VAR))),
    unless_empty("resources", Of(&RESOURCE_REQUIREMENTS)),
    unless_empty("resizePolicy", List(&Of(&CONTAINER_RESIZE_POLICY))),
    unless_empty("restartPolicy", Pointer(&String)),
    unless_empty("volumeMounts", List(&Of(&VOLUME_MOUNT))),
    unless_empty("volumeDevices", List(&Of(&VOLUME_DEVICE))),
    unless_empty("livenessProbe", Pointer(&Of(&PROBE))),
    unless_empty("readinessProbe", Pointer(&Of(&PROBE))),
    unless_empty("startupProbe", Pointer(&Of(&PROBE))),
    unless_empty("lifecycle", Pointer(&Of(&LIFECYCLE))),
    unless_empty("terminationMessagePath", String),
    unless_empty("terminationMessagePolicy", String),
    unless_empty("imagePullPolicy", String),
    unless_empty("securityContext", Pointer(&Of(&SECURITY_CONTEXT))),
    unless_empty("stdin", Bool),
    unless_empty("stdinOnce", Bool),
    unless_empty("tty", Bool),
] };

pub(super) static CONTAINER_PORT: Struct = Struct { fields: &[
    unless_empty("name", String),
    unless_empty("hostPort", Int),
    always("containerPort", Int),
    unless_empty("protocol", String),
    unless_empty("hostIP", String),
] };

pub(super) static CONTAINER_RESIZE_POLICY: Struct = Struct { fields: &[
    always("resourceName", String),
    always("restartPolicy", String),
] };

pub(super) static DOWNWARD_API_PROJECTION: Struct = Struct { fields: &[
    unless_empty("items", List(&Of(&DOWNWARD_API_VOLUME_FILE))),
] };

pub(super) static DOWNWARD_API_VOLUME_FILE: Struct = Struct { fields: &[
    always("path", String),
    unless_empty("fieldRef", Pointer(&Of(&OBJECT_FIELD_SELECTOR))),
    unless_empty("resourceFieldRef", Pointer(&Of(&RESOURCE_FIELD_SELECTOR))),
    unless_empty("mode", Pointer(&Int)),
] };

pub(super) static DOWNWARD_API_VOLUME_SOURCE: Struct = Struct { fields: &[
    unless_empty("items", List(&Of(&DOWNWARD_API_VOLUME_FILE))),
    unless_empty("defaultMode", Pointer(&Int)),
] };

pub(super) static EMPTY_DIR_VOLUME_SOURCE: Struct = Struct { fields: &[
    unless_empty("medium", String),
    unless_empty("sizeLimit", Pointer(&Quantity)),
] };

pub(super) static ENV_FROM_SOURCE: Struct = Struct { fields: &[
    unless_empty("prefix", String),
    unless_empty("configMapRef", Pointer(&Of(&CONFIG_MAP_ENV_SOURCE))),
    unless_empty("secretRef", Pointer(&Of(&SECRET_ENV_SOURCE))),
] };

pub(super) static ENV_VAR: Struct = Struct { fields: &[
    always("name", String),
    unless_empty("value", String),
    unless_empty("valueFrom", Pointer(&Of(&ENV_VAR_SOURCE))),
] };

pub(super) static ENV_VAR_SOURCE: Struct = Struct { fields: &[
    unless_empty("fieldRef", Pointer(&Of(&OBJECT_FIELD_SELECTOR))),
    unless_empty("resourceFieldRef", Pointer(&Of(&RESOURCE_FIELD_SELECTOR))),
    unless_empty("configMapKeyRef", Pointer(&Of(&CONFIG_MAP_KEY_SELECTOR))),
    unless_empty("secretKeyRef", Pointer(&Of(&SECRET_KEY_SELECTOR))),
] };

pub(super) static EPHEMERAL_CONTAINER: Struct = Struct { fields: &[
    always("name", String),
    unless_empty("image", String),
    unless_empty("command", List(&String)),
    unless_empty("args", List(&String)),
    unless_empty("workingDir", String),
    unless_empty("ports", List(&Of(&CONTAINER_PORT))),
    unless_empty("envFrom", List(&Of(&ENV_FROM_SOURCE))),
    unless_empty("env", List(&Of(&ENV_VAR))),
    unless_empty("resources", Of(&RESOURCE_REQUIREMENTS)),
    unless_empty("resizePolicy", List(&Of(&CONTAINER_RESIZE_POLICY))),
    unless_empty("restartPolicy", Pointer(&String)),
    unless_empty("volumeMounts", List(&Of(&VOLUME_MOUNT))),
    unless_empty("volumeDevices", List(&Of(&VOLUME_DEVICE))),
    unless_empty("livenessProbe", Pointer(&Of(&PROBE))),
    unless_empty("readinessProbe", Pointer(&Of(&PROBE))),
    unless_empty("startupProbe", Pointer(&Of(&PROBE))),
    unless_empty("lifecycle", Pointer(&Of(&LIFECYCLE))),
    unless_empty("terminationMessagePath", String),
    unless_empty("terminationMessagePolicy", String),
    unless_empty("imagePullPolicy", String),
    unless_empty("securityContext", Pointer(&Of(&SECURITY_CONTEXT))),
    unless_empty("stdin", Bool),
    unless_empty("stdinOnce", Bool),
    unless_empty("tty", Bool),
    unless_empty("targetContainerName", String),
] };

pub(super) static EPHEMERAL_VOLUME_SOURCE: Struct = Struct { fields: &[
    unless_empty("volumeClaimTemplate", Pointer(&Of(&PERSISTENT_VOLUME_CLAIM_TEMPLATE))),
] };

pub(super) static EXEC_ACTION: Struct = Struct { fields: &[
    unless_empty("command", List(&String)),
] };

pub(super) static FC_VOLUME_SOURCE: Struct = Struct { fields: &[
    unless_empty("targetWWNs", List(&String)),
    unless_empty("lun", Pointer(&Int)),
    unless_empty("fsType", String),
    unless_empty("readOnly", Bool),
    unless_empty("wwids", List(&String)),
] };

pub(super) static FLEX_VOLUME_SOURCE: Struct = Struct { fields: &[
    always("driver", String),
    unless_empty("fsType", String),
    unless_empty("secretRef", Pointer(&Of(&LOCAL_OBJECT_REFERENCE))),
    unless_empty("readOnly", Bool),
    unless_empty("options", Map(&String)),
] };

pub(super) static FLOCKER_VOLUME_SOURCE: Struct = Struct { fields: &[
    unless_empty("datasetName", String),
    unless_empty("datasetUUID", String),
] };

pub(super) static GCE_PERSISTENT_DISK_VOLUME_SOURCE: Struct = Struct { fields: &[
    always("pdName", String),
    unless_empty("fsType", String),
    unless_empty("partition", Int),
    unless_empty("readOnly", Bool),
] };

pub(super) static GRPC_ACTION: Struct = Struct { fields: &[
    always("port", Int),
    always("service", Pointer(&String)),
] };

pub(super) static GIT_REPO_VOLUME_SOURCE: Struct = Struct { fields: &[
    always("repository", String),
    unless_empty("revision", String),
    unless_empty("directory", String),
] };

pub(super) static GLUSTERFS_VOLUME_SOURCE: Struct = Struct { fields: &[
    always("endpoints", String),
    always("path", String),
    unless_empty("readOnly", Bool),
] };

pub(super) static HTTP_GET_ACTION: Struct = Struct { fields: &[
    unless_empty("path", String),
    always("port", IntOrString),
    unless_empty("host", String),
    unless_empty("scheme", String),
    unless_empty("httpHeaders", List(&Of(&HTTP_HEADER))),
] };

pub(super) static HTTP_HEADER: Struct = Struct { fields: &[
    always("name", String),
    always("value", String),
] };

pub(super) static HOST_ALIAS: Struct = Struct { fields: &[
    always("ip", String),
    unless_empty("hostnames", List(&String)),
] };

pub(super) static HOST_PATH_VOLUME_SOURCE: Struct = Struct { fields: &[
    always("path", String),
    unless_empty("type", Pointer(&String)),
] };

pub(super) static ISCSI_VOLUME_SOURCE: Struct = Struct { fields: &[
    always("targetPortal", String),
    always("iqn", String),
    always("lun", Int),
    unless_empty("iscsiInterface", String),
    unless_empty("fsType", String),
    unless_empty("readOnly", Bool),
    unless_empty("portals", List(&String)),
    unless_empty("chapAuthDiscovery", Bool),
    unless_empty("chapAuthSession", Bool),
    unless_empty("secretRef", Pointer(&Of(&LOCAL_OBJECT_REFERENCE))),
    unless_empty("initiatorName", Pointer(&String)),
] };

pub(super) static IMAGE_VOLUME_SOURCE: Struct = Struct { fields: &[
    unless_empty("reference", String),
    unless_empty("pullPolicy", String),
] };

pub(super) static KEY_TO_PATH: Struct = Struct { fields: &[
    always("key", String),
    always("path", String),
    unless_empty("mode", Pointer(&Int)),
] };

pub(super) static LABEL_SELECTOR: Struct = Struct { fields: &[
    unless_empty("matchLabels", Map(&String)),
    unless_empty("matchExpressions", List(&Of(&LABEL_SELECTOR_REQUIREMENT))),
] };

pub(super) static LABEL_SELECTOR_REQUIREMENT: Struct = Struct { fields: &[
    always("key", String),
    always("operator", String),
    unless_empty("values", List(&String)),
] };

pub(super) static LIFECYCLE: Struct = Struct { fields: &[
    unless_empty("postStart", Pointer(&Of(&LIFECYCLE_HANDLER))),
    unless_empty("preStop", Pointer(&Of(&LIFECYCLE_HANDLER))),
] };

pub(super) static LIFECYCLE_HANDLER: Struct = Struct { fields: &[
    unless_empty("exec", Pointer(&Of(&EXEC_ACTION))),
    unless_empty("httpGet", Pointer(&Of(&HTTP_GET_ACTION))),
    unless_empty("tcpSocket", Pointer(&Of(&TCP_SOCKET_ACTION))),
    unless_empty("sleep", Pointer(&Of(&SLEEP_ACTION))),
] };

pub(super) static LOCAL_OBJECT_REFERENCE: Struct = Struct { fields: &[
    unless_empty("name", String),
] };

pub(super) static MANAGED_FIELDS_ENTRY: Struct = Struct { fields: &[
    unless_empty("manager", String),
    unless_empty("operation", String),
    unless_empty("apiVersion", String),
    unless_empty("time", Pointer(&Time)),
    unless_empty("fieldsType", String),
    unless_empty("fieldsV1", Pointer(&Any)),
    unless_empty("subresource", String),
] };

pub(super) static MODIFY_VOLUME_STATUS: Struct = Struct { fields: &[
    unless_empty("targetVolumeAttributesClassName", String),
    always("status", String),
] };

pub(super) static NFS_VOLUME_SOURCE: Struct = Struct { fields: &[
    always("server", String),
    always("path", String),
    unless_empty("readOnly", Bool),
] };

pub(super) static NODE_AFFINITY: Struct = Struct { fields: &[
    unless_empty("requiredDuringSchedulingIgnoredDuringExecution", Pointer(&Of(&NODE_SELECTOR))),
    unless_empty("preferredDuringSchedulingIgnoredDuringExecution", List(&Of(&PREFERRED_SCHEDULING_TERM))),
] };

pub(super) static NODE_SELECTOR: Struct = Struct { fields: &[
    always("nodeSelectorTerms", List(&Of(&NODE_SELECTOR_TERM))),
] };

pub(super) static NODE_SELECTOR_REQUIREMENT: Struct = Struct { fields: &[
    always("key", String),
    always("operator", String),
    unless_empty("values", List(&String)),
] };

pub(super) static NODE_SELECTOR_TERM: Struct = Struct { fields: &[
    unless_empty("matchExpressions", List(&Of(&NODE_SELECTOR_REQUIREMENT))),
    unless_empty("matchFields", List(&Of(&NODE_SELECTOR_REQUIREMENT))),
] };

pub(super) static OBJECT_FIELD_SELECTOR: Struct = Struct { fields: &[
    unless_empty("apiVersion", String),
    always("fieldPath", String),
] };

pub(super) static OBJECT_META: Struct = Struct { fields: &[
    unless_empty("name", String),
    unless_empty("generateName", String),
    unless_empty("namespace", String),
    unless_empty("selfLink", String),
    unless_empty("uid", String),
    unless_empty("resourceVersion", String),
    unless_empty("generation", Int),
    unless_empty("creationTimestamp", Time),
    unless_empty("deletionTimestamp", Pointer(&Time)),
    unless_empty("deletionGracePeriodSeconds", Pointer(&Int)),
    unless_empty("labels", Map(&String)),
    unless_empty("annotations", Map(&String)),
    unless_empty("ownerReferences", List(&Of(&OWNER_REFERENCE))),
    unless_empty("finalizers", List(&String)),
    unless_empty("managedFields", List(&Of(&MANAGED_FIELDS_ENTRY))),
] };

pub(super) static OWNER_REFERENCE: Struct = Struct { fields: &[
    always("apiVersion", String),
    always("kind", String),
    always("name", String),
    always("uid", String),
    unless_empty("controller", Pointer(&Bool)),
    unless_empty("blockOwnerDeletion", Pointer(&Bool)),
] };

pub(super) static PERSISTENT_VOLUME_CLAIM: Struct = Struct { fields: &[
    unless_empty("kind", String),
    unless_empty("apiVersion", String),
    unless_empty("metadata", Of(&OBJECT_META)),
    unless_empty("spec", Of(&PERSISTENT_VOLUME_CLAIM_SPEC)),
    unless_empty("status", Of(&PERSISTENT_VOLUME_CLAIM_STATUS)),
] };

pub(super) static PERSISTENT_VOLUME_CLAIM_CONDITION: Struct = Struct { fields: &[
    always("type", String),
    always("status", String),
    unless_empty("lastProbeTime", Time),
    unless_empty("lastTransitionTime", Time),
    unless_empty("reason", String),
    unless_empty("message", String),
] };

pub(super) static PERSISTENT_VOLUME_CLAIM_SPEC: Struct = Struct { fields: &[
    unless_empty("accessModes", List(&String)),
    unless_empty("selector", Pointer(&Of(&LABEL_SELECTOR))),
    unless_empty("resources", Of(&VOLUME_RESOURCE_REQUIREMENTS)),
    unless_empty("volumeName", String),
    unless_empty("storageClassName", Pointer(&String)),
    unless_empty("volumeMode", Pointer(&String)),
    unless_empty("dataSource", Pointer(&Of(&TYPED_LOCAL_OBJECT_REFERENCE))),
    unless_empty("dataSourceRef", Pointer(&Of(&TYPED_OBJECT_REFERENCE))),
    unless_empty("volumeAttributesClassName", Pointer(&String)),
] };

pub(super) static PERSISTENT_VOLUME_CLAIM_STATUS: Struct = Struct { fields: &[
    unless_empty("phase", String),
    unless_empty("accessModes", List(&String)),
    unless_empty("capacity", Map(&Quantity)),
    unless_empty("conditions", List(&Of(&PERSISTENT_VOLUME_CLAIM_CONDITION))),
    unless_empty("allocatedResources", Map(&Quantity)),
    unless_empty("allocatedResourceStatuses", Map(&String)),
    unless_empty("currentVolumeAttributesClassName", Pointer(&String)),
    unless_empty("modifyVolumeStatus", Pointer(&Of(&MODIFY_VOLUME_STATUS))),
] };

pub(super) static PERSISTENT_VOLUME_CLAIM_TEMPLATE: Struct = Struct { fields: &[
    unless_empty("metadata", Of(&OBJECT_META)),
    always("spec", Of(&PERSISTENT_VOLUME_CLAIM_SPEC)),
] };

pub(super) static PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE: Struct = Struct { fields: &[
    always("claimName", String),
    unless_empty("readOnly", Bool),
] };

pub(super) static PHOTON_PERSISTENT_DISK_VOLUME_SOURCE: Struct = Struct { fields: &[
    always("pdID", String),
    unless_empty("fsType", String),
] };

pub(super) static POD_AFFINITY: Struct = Struct { fields: &[
    unless_empty("requiredDuringSchedulingIgnoredDuringExecution", List(&Of(&POD_AFFINITY_TERM))),
    unless_empty("preferredDuringSchedulingIgnoredDuringExecution", List(&Of(&WEIGHTED_POD_AFFINITY_TERM))),
] };

pub(super) static POD_AFFINITY_TERM: Struct = Struct { fields: &[
    unless_empty("labelSelector", Pointer(&Of(&LABEL_SELECTOR))),
    unless_empty("namespaces", List(&String)),
    always("topologyKey", String),
    unless_empty("namespaceSelector", Pointer(&Of(&LABEL_SELECTOR))),
    unless_empty("matchLabelKeys", List(&String)),
    unless_empty("mismatchLabelKeys", List(&String)),
] };

pub(super) static POD_ANTI_AFFINITY: Struct = Struct { fields: &[
    unless_empty("requiredDuringSchedulingIgnoredDuringExecution", List(&Of(&POD_AFFINITY_TERM))),
    unless_empty("preferredDuringSchedulingIgnoredDuringExecution", List(&Of(&WEIGHTED_POD_AFFINITY_TERM))),
] };

pub(super) static POD_DNS_CONFIG: Struct = Struct { fields: &[
    unless_empty("nameservers", List(&String)),
    unless_empty("searches", List(&String)),
    unless_empty("options", List(&Of(&POD_DNS_CONFIG_OPTION))),
] };

pub(super) static POD_DNS_CONFIG_OPTION: Struct = Struct { fields: &[
    unless_empty("name", String),
    unless_empty("value", Pointer(&String)),
] };

pub(super) static POD_OS: Struct = Struct { fields: &[
    always("name", String),
] };

pub(super) static POD_READINESS_GATE: Struct = Struct { fields: &[
    always("conditionType", String),
] };

pub(super) static POD_RESOURCE_CLAIM: Struct = Struct { fields: &[
    always("name", String),
    unless_empty("resourceClaimName", Pointer(&String)),
    unless_empty("resourceClaimTemplateName", Pointer(&String)),
] };

pub(super) static POD_SCHEDULING_GATE: Struct = Struct { fields: &[
    always("name", String),
] };

pub(super) static POD_SECURITY_CONTEXT: Struct = Struct { fields: &[
    unless_empty("seLinuxOptions", Pointer(&Of(&SE_LINUX_OPTIONS))),
    unless_empty("windowsOptions", Pointer(&Of(&WINDOWS_SECURITY_CONTEXT_OPTIONS))),
    unless_empty("runAsUser", Pointer(&Int)),
    unless_empty("runAsGroup", Pointer(&Int)),
    unless_empty("runAsNonRoot", Pointer(&Bool)),
    unless_empty("supplementalGroups", List(&Int)),
    unless_empty("supplementalGroupsPolicy", Pointer(&String)),
    unless_empty("fsGroup", Pointer(&Int)),
    unless_empty("sysctls", List(&Of(&SYSCTL))),
    unless_empty("fsGroupChangePolicy", Pointer(&String)),
    unless_empty("seccompProfile", Pointer(&Of(&SECCOMP_PROFILE))),
    unless_empty("appArmorProfile", Pointer(&Of(&APP_ARMOR_PROFILE))),
    unless_empty("seLinuxChangePolicy", Pointer(&String)),
] };

pub(super) static POD_SPEC: Struct = Struct { fields: &[
    unless_empty("volumes", List(&Of(&VOLUME))),
    unless_empty("initContainers", List(&Of(&CONTAINER))),
    always("containers", List(&Of(&CONTAINER))),
    unless_empty("ephemeralContainers", List(&Of(&EPHEMERAL_CONTAINER))),
    unless_empty("restartPolicy", String),
    unless_empty("terminationGracePeriodSeconds", Pointer(&Int)),
    unless_empty("activeDeadlineSeconds", Pointer(&Int)),
    unless_empty("dnsPolicy", String),
    unless_empty("nodeSelector", Map(&String)),
    unless_empty("serviceAccountName", String),
    unless_empty("serviceAccount", String),
    unless_empty("automountServiceAccountToken", Pointer(&Bool)),
    unless_empty("nodeName", String),
    unless_empty("hostNetwork", Bool),
    unless_empty("hostPID", Bool),
    unless_empty("hostIPC", Bool),
    unless_empty("shareProcessNamespace", Pointer(&Bool)),
    unless_empty("securityContext", Pointer(&Of(&POD_SECURITY_CONTEXT))),
    unless_empty("imagePullSecrets", List(&Of(&LOCAL_OBJECT_REFERENCE))),
    unless_empty("hostname", String),
    unless_empty("subdomain", String),
    unless_empty("affinity", Pointer(&Of(&AFFINITY))),
    unless_empty("schedulerName", String),
    unless_empty("tolerations", List(&Of(&TOLERATION))),
    unless_empty("hostAliases", List(&Of(&HOST_ALIAS))),
    unless_empty("priorityClassName", String),
    unless_empty("priority", Pointer(&Int)),
    unless_empty("dnsConfig", Pointer(&Of(&POD_DNS_CONFIG))),
    unless_empty("readinessGates", List(&Of(&POD_READINESS_GATE))),
    unless_empty("runtimeClassName", Pointer(&String)),
    unless_empty("enableServiceLinks", Pointer(&Bool)),
    unless_empty("preemptionPolicy", Pointer(&String)),
    unless_empty("overhead", Map(&Quantity)),
    unless_empty("topologySpreadConstraints", List(&Of(&TOPOLOGY_SPREAD_CONSTRAINT))),
    unless_empty("setHostnameAsFQDN", Pointer(&Bool)),
    unless_empty("os", Pointer(&Of(&POD_OS))),
    unless_empty("hostUsers", Pointer(&Bool)),
    unless_empty("schedulingGates", List(&Of(&POD_SCHEDULING_GATE))),
    unless_empty("resourceClaims", List(&Of(&POD_RESOURCE_CLAIM))),
    unless_empty("resources", Pointer(&Of(&RESOURCE_REQUIREMENTS))),
] };

pub(super) static POD_TEMPLATE_SPEC: Struct = Struct { fields: &[
    unless_empty("metadata", Of(&OBJECT_META)),
    unless_empty("spec", Of(&POD_SPEC)),
] };

pub(super) static PORTWORX_VOLUME_SOURCE: Struct = Struct { fields: &[
    always("volumeID", String),
    unless_empty("fsType", String),
    unless_empty("readOnly", Bool),
] };

pub(super) static PREFERRED_SCHEDULING_TERM: Struct = Struct { fields: &[
    always("weight", Int),
    always("preference", Of(&NODE_SELECTOR_TERM)),
] };

pub(super) static PROBE: Struct = Struct { fields: &[
    unless_empty("exec", Pointer(&Of(&EXEC_ACTION))),
    unless_empty("httpGet", Pointer(&Of(&HTTP_GET_ACTION))),
    unless_empty("tcpSocket", Pointer(&Of(&TCP_SOCKET_ACTION))),
    unless_empty("grpc", Pointer(&Of(&GRPC_ACTION))),
    unless_empty("initialDelaySeconds", Int),
    unless_empty("timeoutSeconds", Int),
    unless_empty("periodSeconds", Int),
    unless_empty("successThreshold", Int),
    unless_empty("failureThreshold", Int),
    unless_empty("terminationGracePeriodSeconds", Pointer(&Int)),
] };

pub(super) static PROJECTED_VOLUME_SOURCE: Struct = Struct { fields: &[
    always("sources", List(&Of(&VOLUME_PROJECTION))),
    unless_empty("defaultMode", Pointer(&Int)),
] };

pub(super) static QUOBYTE_VOLUME_SOURCE: Struct = Struct { fields: &[
    always("registry", String),
    always("volume", String),
    unless_empty("readOnly", Bool),
    unless_empty("user", String),
    unless_empty("group", String),
    unless_empty("tenant", String),
] };

pub(super) static RBD_VOLUME_SOURCE: Struct = Struct { fields: &[
    always("monitors", List(&String)),
    always("image", String),
    unless_empty("fsType", String),
    unless_empty("pool", String),
    unless_empty("user", String),
    unless_empty("keyring", String),
    unless_empty("secretRef", Pointer(&Of(&LOCAL_OBJECT_REFERENCE))),
    unless_empty("readOnly", Bool),
] };

pub(super) static RESOURCE_CLAIM: Struct = Struct { fields: &[
    always("name", String),
    unless_empty("request", String),
] };

pub(super) static RESOURCE_FIELD_SELECTOR: Struct = Struct { fields: &[
    unless_empty("containerName", String),
    always("resource", String),
    unless_empty("divisor", Quantity),
] };

pub(super) static RESOURCE_REQUIREMENTS: Struct = Struct { fields: &[
    unless_empty("limits", Map(&Quantity)),
    unless_empty("requests", Map(&Quantity)),
    unless_empty("claims", List(&Of(&RESOURCE_CLAIM))),
] };

pub(super) static SE_LINUX_OPTIONS: Struct = Struct { fields: &[
    unless_empty("user", String),
    unless_empty("role", String),
    unless_empty("type", String),
    unless_empty("level", String),
] };

pub(super) static SCALE_IO_VOLUME_SOURCE: Struct = Struct { fields: &[
    always("gateway", String),
    always("system", String),
    always("secretRef", Pointer(&Of(&LOCAL_OBJECT_REFERENCE))),
    unless_empty("sslEnabled", Bool),
    unless_empty("protectionDomain", String),
    unless_empty("storagePool", String),
    unless_empty("storageMode", String),
    unless_empty("volumeName", String),
    unless_empty("fsType", String),
    unless_empty("readOnly", Bool),
] };

pub(super) static SECCOMP_PROFILE: Struct = Struct { fields: &[
    always("type", String),
    unless_empty("localhostProfile", Pointer(&String)),
] };

pub(super) static SECRET_ENV_SOURCE: Struct = Struct { fields: &[
    unless_empty("name", String),
    unless_empty("optional", Pointer(&Bool)),
] };

pub(super) static SECRET_KEY_SELECTOR: Struct = Struct { fields: &[
    unless_empty("name", String),
    always("key", String),
    unless_empty("optional", Pointer(&Bool)),
] };

pub(super) static SECRET_PROJECTION: Struct = Struct { fields: &[
    unless_empty("name", String),
    unless_empty("items", List(&Of(&KEY_TO_PATH))),
    unless_empty("optional", Pointer(&Bool)),
] };

pub(super) static SECRET_VOLUME_SOURCE: Struct = Struct { fields: &[
    unless_empty("secretName", String),
    unless_empty("items", List(&Of(&KEY_TO_PATH))),
    unless_empty("defaultMode", Pointer(&Int)),
    unless_empty("optional", Pointer(&Bool)),
] };

pub(super) static SECURITY_CONTEXT: Struct = Struct { fields: &[
    unless_empty("capabilities", Pointer(&Of(&CAPABILITIES))),
    unless_empty("privileged", Pointer(&Bool)),
    unless_empty("seLinuxOptions", Pointer(&Of(&SE_LINUX_OPTIONS))),
    unless_empty("windowsOptions", Pointer(&Of(&WINDOWS_SECURITY_CONTEXT_OPTIONS))),
    unless_empty("runAsUser", Pointer(&Int)),
    unless_empty("runAsGroup", Pointer(&Int)),
    unless_empty("runAsNonRoot", Pointer(&Bool)),
    unless_empty("readOnlyRootFilesystem", Pointer(&Bool)),
    unless_empty("allowPrivilegeEscalation", Pointer(&Bool)),
    unless_empty("procMount", Pointer(&String)),
    unless_empty("seccompProfile", Pointer(&Of(&SECCOMP_PROFILE))),
    unless_empty("appArmorProfile", Pointer(&Of(&APP_ARMOR_PROFILE))),
] };

pub(super) static SERVICE_ACCOUNT_TOKEN_PROJECTION: Struct = Struct { fields: &[
    unless_empty("audience", String),
    unless_empty("expirationSeconds", Pointer(&Int)),
    always("path", String),
] };

pub(super) static SLEEP_ACTION: Struct = Struct { fields: &[
    always("seconds", Int),
] };

pub(super) static STORAGE_OS_VOLUME_SOURCE: Struct = Struct { fields: &[
    unless_empty("volumeName", String),
    unless_empty("volumeNamespace", String),
    unless_empty("fsType", String),
    unless_empty("readOnly", Bool),
    unless_empty("secretRef", Pointer(&Of(&LOCAL_OBJECT_REFERENCE))),
] };

pub(super) static SYSCTL: Struct = Struct { fields: &[
    always("name", String),
    always("value", String),
] };

pub(super) static TCP_SOCKET_ACTION: Struct = Struct { fields: &[
    always("port", IntOrString),
    unless_empty("host", String),
] };

pub(super) static TOLERATION: Struct = Struct { fields: &[
    unless_empty("key", String),
    unless_empty("operator", String),
    unless_empty("value", String),
    unless_empty("effect", String),
    unless_empty("tolerationSeconds", Pointer(&Int)),
] };

pub(super) static TOPOLOGY_SPREAD_CONSTRAINT: Struct = Struct { fields: &[
    always("maxSkew", Int),
    always("topologyKey", String),
    always("whenUnsatisfiable", String),
    unless_empty("labelSelector", Pointer(&Of(&LABEL_SELECTOR))),
    unless_empty("minDomains", Pointer(&Int)),
    unless_empty("nodeAffinityPolicy", Pointer(&String)),
    unless_empty("nodeTaintsPolicy", Pointer(&String)),
    unless_empty("matchLabelKeys", List(&String)),
] };

pub(super) static TYPED_LOCAL_OBJECT_REFERENCE: Struct = Struct { fields: &[
    always("apiGroup", Pointer(&String)),
    always("kind", String),
    always("name", String),
] };

pub(super) static TYPED_OBJECT_REFERENCE: Struct = Struct { fields: &[
    always("apiGroup", Pointer(&String)),
    always("kind", String),
    always("name", String),
    unless_empty("namespace", Pointer(&String)),
] };

pub(super) static VOLUME: Struct = Struct { fields: &[
    always("name", String),
    unless_empty("hostPath", Pointer(&Of(&HOST_PATH_VOLUME_SOURCE))),
    unless_empty("emptyDir", Pointer(&Of(&EMPTY_DIR_VOLUME_SOURCE))),
    unless_empty("gcePersistentDisk", Pointer(&Of(&GCE_PERSISTENT_DISK_VOLUME_SOURCE))),
    unless_empty("awsElasticBlockStore", Pointer(&Of(&AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE))),
    unless_empty("gitRepo", Pointer(&Of(&GIT_REPO_VOLUME_SOURCE))),
    unless_empty("secret", Pointer(&Of(&SECRET_VOLUME_SOURCE))),
    unless_empty("nfs", Pointer(&Of(&NFS_VOLUME_SOURCE))),
    unless_empty("iscsi", Pointer(&Of(&ISCSI_VOLUME_SOURCE))),
    unless_empty("glusterfs", Pointer(&Of(&GLUSTERFS_VOLUME_SOURCE))),
    unless_empty("persistentVolumeClaim", Pointer(&Of(&PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE))),
    unless_empty("rbd", Pointer(&Of(&RBD_VOLUME_SOURCE))),
    unless_empty("flexVolume", Pointer(&Of(&FLEX_VOLUME_SOURCE))),
    unless_empty("cinder", Pointer(&Of(&CINDER_VOLUME_SOURCE))),
    unless_empty("cephfs", Pointer(&Of(&CEPH_FS_VOLUME_SOURCE))),
    unless_empty("flocker", Pointer(&Of(&FLOCKER_VOLUME_SOURCE))),
    unless_empty("downwardAPI", Pointer(&Of(&DOWNWARD_API_VOLUME_SOURCE))),
    unless_empty("fc", Pointer(&Of(&FC_VOLUME_SOURCE))),
    unless_empty("azureFile", Pointer(&Of(&AZURE_FILE_VOLUME_SOURCE))),
    unless_empty("configMap", Pointer(&Of(&CONFIG_MAP_VOLUME_SOURCE))),
    unless_empty("vsphereVolume", Pointer(&Of(&VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE))),
    unless_empty("quobyte", Pointer(&Of(&QUOBYTE_VOLUME_SOURCE))),
    unless_empty("azureDisk", Pointer(&Of(&AZURE_DISK_VOLUME_SOURCE))),
    unless_empty("photonPersistentDisk", Pointer(&Of(&PHOTON_PERSISTENT_DISK_VOLUME_SOURCE))),
    unless_empty("projected", Pointer(&Of(&PROJECTED_VOLUME_SOURCE))),
    unless_empty("portworxVolume", Pointer(&Of(&PORTWORX_VOLUME_SOURCE))),
    unless_empty("scaleIO", Pointer(&Of(&SCALE_IO_VOLUME_SOURCE))),
    unless_empty("storageos", Pointer(&Of(&STORAGE_OS_VOLUME_SOURCE))),
    unless_empty("csi", Pointer(&Of(&CSI_VOLUME_SOURCE))),
    unless_empty("ephemeral", Pointer(&Of(&EPHEMERAL_VOLUME_SOURCE))),
    unless_empty("image", Pointer(&Of(&IMAGE_VOLUME_SOURCE))),
] };

pub(super) static VOLUME_DEVICE: Struct = Struct { fields: &[
    always("name", String),
    always("devicePath", String),
] };

pub(super) static VOLUME_MOUNT: Struct = Struct { fields: &[
    always("name", String),
    unless_empty("readOnly", Bool),
    unless_empty("recursiveReadOnly", Pointer(&String)),
    always("mountPath", String),
    unless_empty("subPath", String),
    unless_empty("mountPropagation", Pointer(&String)),
    unless_empty("subPathExpr", String),
] };

pub(super) static VOLUME_PROJECTION: Struct = Struct { fields: &[
    unless_empty("secret", Pointer(&Of(&SECRET_PROJECTION))),
    unless_empty("downwardAPI", Pointer(&Of(&DOWNWARD_API_PROJECTION))),
    unless_empty("configMap", Pointer(&Of(&CONFIG_MAP_PROJECTION))),
    unless_empty("serviceAccountToken", Pointer(&Of(&SERVICE_ACCOUNT_TOKEN_PROJECTION))),
    unless_empty("clusterTrustBundle", Pointer(&Of(&CLUSTER_TRUST_BUNDLE_PROJECTION))),
] };

pub(super) static VOLUME_RESOURCE_REQUIREMENTS: Struct = Struct { fields: &[
    unless_empty("limits", Map(&Quantity)),
    unless_empty("requests", Map(&Quantity)),
] };

pub(super) static VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE: Struct = Struct { fields: &[
    always("volumePath", String),
    unless_empty("fsType", String),
    unless_empty("storagePolicyName", String),
    unless_empty("storagePolicyID", String),
] };

pub(super) static WEIGHTED_POD_AFFINITY_TERM: Struct = Struct { fields: &[
    always("weight", Int),
    always("podAffinityTerm", Of(&POD_AFFINITY_TERM)),
] };

pub(super) static WINDOWS_SECURITY_CONTEXT_OPTIONS: Struct = Struct { fields: &[
    unless_empty("gmsaCredentialSpecName", Pointer(&String)),
    unless_empty("gmsaCredentialSpec", Pointer(&String)),
    unless_empty("runAsUserName", Pointer(&String)),
    unless_empty("hostProcess", Pointer(&Bool)),
] };
