"""The protocols: public options, what a device does with what it is sent, what the server learns."""
