/* poweroff: ends the simulated machine at once. */
#include <sys/reboot.h>
#include <unistd.h>

int main(void)
{
	sync();
	return reboot(RB_POWER_OFF);
}
