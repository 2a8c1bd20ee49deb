package dbusapi

// Methods of [BrokerInterface].
const (
	MethodGetSnapshot         = "GetSnapshot"
	MethodResume              = "Resume"
	MethodGetParameters       = "GetParameters"
	MethodGetInformation      = "GetInformation"
	MethodStatus              = "Status"
	MethodExplain             = "Explain"
	MethodConfigureThresholds = "ConfigureThresholds"
	MethodSubscribe           = "Subscribe"
	MethodRecord              = "Record"
	MethodCloseStream         = "CloseStream"
	MethodRegisterFlow        = "RegisterFlow"
	MethodUnregisterFlow      = "UnregisterFlow"
	MethodUpdateFlow          = "UpdateFlow"
	MethodAcknowledge         = "Acknowledge"
)

// Signals of [BrokerInterface] that are no events.
const (
	SignalDelivery    = "Delivery"
	SignalStreamEnded = "StreamEnded"
	SignalDetached    = "Detached"
	SignalGap         = "Gap"
)
